"""What a model that was never taught to call tools reads before a prompt, and the room that this leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from inference_gateway.call_vocabulary import PromptTokenizer
from toolformer.calls_in_text import encode_with_calls
from toolformer.http_api import ApiError
from toolformer.tools import Tool, ToolRegistry


@lru_cache(64)
def hidden_ids(tools: tuple[Tool, ...], tokenizer: PromptTokenizer) -> tuple[int, ...]:
    """The hidden prompt of ``tools``. It is encoded apart from the prompt behind it: so it has the same ids every time,
    and its keys and values are found in the prefix cache."""
    shown = "".join(tool.hidden_prompt for tool in tools)
    return (*tokenizer.encode_prompt(""), *encode_with_calls(shown, tokenizer, ToolRegistry(tools)))


@dataclass(frozen=True, slots=True)
class Context:
    """The tokens of one sequence: the model takes ``length``, and ``hidden`` of them are before the prompt.

    Raises:
        ApiError: 400 if that leaves no room for a prompt.
    """

    length: int
    hidden: int = 0

    def __post_init__(self) -> None:
        if self.left < 2:
            message = (
                f"the model takes at most {self.length:,} tokens, and showing it the tools takes {self.hidden:,}: ask "
                "for fewer 'tools', or give them a short_prompt in the registry"
            )
            raise ApiError(400, message, param="tool_prompting", code="context_length_exceeded")

    @property
    def left(self) -> int:
        """Tokens of prompt and completion."""
        return self.length - self.hidden

    def max_tokens(self, prompt: int, asked: int | None, default: int) -> int:
        """Tokens the model may make after ``prompt`` tokens.

        Raises:
            ApiError: if the prompt, or the prompt with what was ``asked`` for, is too long.
        """
        room = self.left - prompt
        if room < 1:
            raise self.too_long(f"{prompt:,}")
        if asked is not None and asked > room:
            message = (
                f"{self._limit}; the prompt has {prompt:,} and 'max_tokens' asks for {asked:,}: shorten the prompt or "
                f"ask for at most {room:,}"
            )
            raise ApiError(400, message, param="max_tokens", code="context_length_exceeded")
        return min(default, room) if asked is None else asked

    def too_long(self, tokens: str) -> ApiError:
        """The error of a prompt of ``tokens``."""
        message = f"{self._limit}; the prompt has {tokens}: shorten it to {self.left - 1:,}"
        return ApiError(400, message, param="prompt", code="context_length_exceeded")

    @property
    def _limit(self) -> str:
        hidden = f"; showing it the tools takes {self.hidden:,} of them" if self.hidden else ""
        return f"the model takes at most {self.length:,} tokens, prompt and completion together{hidden}"
