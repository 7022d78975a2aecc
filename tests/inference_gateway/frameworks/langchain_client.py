"""LangChain's classes, asked as their users ask them; run by ``test_frameworks.py`` where LangChain is installed."""

from typing import Any

from langchain_core.outputs import LLMResult
from langchain_openai import ChatOpenAI, OpenAI

from tests.inference_gateway.frameworks.answers import Answer, show


class OpenAIWithCalls(OpenAI):  # type: ignore[misc]  # LangChain is not installed where types are checked
    """OpenAI's completions, whose ``generation_info`` has the calls that the gateway made."""

    def create_llm_result(self, choices: Any, prompts: Any, *rest: Any, **named: Any) -> LLMResult:
        """See the base class."""
        result = super().create_llm_result(choices, prompts, *rest, **named)
        generations = [one for of_prompt in result.generations for one in of_prompt]
        for choice, generation in zip(choices, generations, strict=True):
            generation.generation_info["tool_calls"] = choice.get("tool_calls")
        return result


def ask(url: str, shown: bool) -> dict[str, Answer]:
    fields = {"base_url": url, "api_key": "none", "model": "scripted", "max_retries": 0}
    fields |= {"max_tokens": 40, "extra_body": {"show_calls": shown}}
    completions, chat = OpenAIWithCalls(**fields), ChatOpenAI(**fields)
    [[generation]] = completions.generate(["Sum:"]).generations
    return {
        "completion": (generation.text, generation.generation_info["tool_calls"]),
        "completion stream": ("".join(completions.stream("Sum:")), None),
        "chat": (chat.invoke("Sum:").content, None),
        "chat stream": ("".join(chunk.content for chunk in chat.stream("Sum:")), None),
    }


show(ask)
