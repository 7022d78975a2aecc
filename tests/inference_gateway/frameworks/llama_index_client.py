"""LlamaIndex' class for servers of OpenAI's API, run by ``test_frameworks.py`` where LlamaIndex is installed."""

from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from tests.inference_gateway.frameworks.answers import Answer, show


def ask(url: str, shown: bool) -> dict[str, Answer]:
    fields: dict[str, Any] = {"api_base": url, "api_key": "none", "model": "scripted", "max_retries": 0}
    fields |= {"max_tokens": 40, "context_window": 256, "additional_kwargs": {"extra_body": {"show_calls": shown}}}
    completions, chat = OpenAILike(**fields, is_chat_model=False), OpenAILike(**fields, is_chat_model=True)
    asked = [ChatMessage(role="user", content="Sum:")]
    whole, answer = completions.complete("Sum:"), chat.chat(asked)
    return {
        "completion": (whole.text, calls(whole)),
        "completion stream": last(completions.stream_complete("Sum:"), lambda piece: piece.text),
        "chat": (answer.message.content, calls(answer)),
        "chat stream": last(chat.stream_chat(asked), lambda piece: piece.message.content),
    }


def calls(response: Any) -> Any:
    """The calls that the gateway made: ``raw`` is the object of OpenAI's client."""
    return response.raw.choices[0].tool_calls


def last(stream: Any, text: Any) -> Answer:
    pieces = list(stream)
    return text(pieces[-1]), calls(pieces[-1])


show(ask)
