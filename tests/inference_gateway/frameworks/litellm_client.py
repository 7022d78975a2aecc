"""LiteLLM's two functions, run by ``test_frameworks.py`` where LiteLLM is installed."""

from typing import Any

import litellm

from tests.inference_gateway.frameworks.answers import Answer, show


def ask(url: str, shown: bool) -> dict[str, Answer]:
    fields: dict[str, Any] = {"api_base": url, "api_key": "none", "max_tokens": 40, "num_retries": 0}
    fields["extra_body"] = {"show_calls": shown}
    of_text: dict[str, Any] = {"model": "text-completion-openai/scripted", "prompt": "Sum:", **fields}
    of_chat: dict[str, Any] = {"model": "openai/scripted", "messages": [{"role": "user", "content": "Sum:"}], **fields}
    completion, answer = litellm.text_completion(**of_text), litellm.completion(**of_chat)
    pieces = litellm.text_completion(**of_text, stream=True)
    deltas = litellm.completion(**of_chat, stream=True)
    return {
        "completion": (completion.choices[0].text, None),
        "completion stream": ("".join(piece.choices[0].text or "" for piece in pieces), None),
        "chat": (answer.choices[0].message.content, None),
        "chat stream": ("".join(piece.choices[0].delta.content or "" for piece in deltas), None),
    }


show(ask)
