"""One log line a completion request: how much, how long, how it ended and, only if asked for, what was written."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from inference_gateway.serving.choices import Progress, total_usage
from inference_gateway.serving.planning import Plan

logger = logging.getLogger(__name__)


def log_completion(
    id: str, client: str | None, plan: Plan, choices: Sequence[Progress], *, seconds: float, with_text: bool
) -> None:
    """Log the request whose answer was ``id``, of the API key named ``client``.

    ``with_text`` adds prompts, completions and what tools were asked and answered.
    """
    usage = total_usage(choices, plan.per_prompt)
    reasons = [choice.finished.reason if choice.finished else "cancelled" for choice in choices]
    calls = sum(len(choice.tool_calls) for choice in choices)
    fields: dict[str, Any] = {
        "completion_id": id,
        "api_key": client,
        "finish_reasons": reasons,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "tool_tokens": usage.tool_tokens,
        "tool_calls": calls,
        "seconds": round(seconds, 4),
    }
    texts = ""
    if with_text:
        fields["prompts"] = [choice.planned.prompt for choice in choices[:: plan.per_prompt]]
        fields["texts"] = ["".join(choice.text) for choice in choices]
        fields["calls"] = [[call.model_dump() for call in choice.tool_calls] for choice in choices]
        texts = f": {fields['prompts']!r} -> {fields['texts']!r}"
    logger.info(
        "completion %s: %s, %d prompt and %d completion tokens, %d tool calls, %.3f s%s",
        id,
        ", ".join(reasons),
        usage.prompt_tokens,
        usage.completion_tokens,
        calls,
        seconds,
        texts,
        extra=fields,
    )
