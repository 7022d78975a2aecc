"""Completion requests and events as messages of ``proto/toolformer/v1``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError

from inference_gateway.core import CallFinished, CallStarted, Event, Finished, TextDelta, TokenLogprob
from inference_gateway.serving.choices import Progress, total_usage
from inference_gateway.serving.fields import MAX_BIASED_TOKENS, MAX_STOP_STRINGS, MAX_STOP_TOKENS, MAX_TOOLS
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.serving.response import ToolCall
from toolformer.api_call import ApiCall
from toolformer.http_api import ApiError
from toolformer.http_api.errors import invalid_fields
from toolformer.v1 import completion_pb2 as pb


def body_of(request: pb.CompletionRequest) -> CompletionBody:
    """``request`` as the body that REST would have received: one set of checks for both.

    Raises:
        ApiError: 422 naming the first field at fault.
    """
    rest = pb.CompletionRequest()
    rest.CopyFrom(request)
    _shorten(rest)
    ids = list(rest.prompt_token_ids) or None
    tools = _tool_names(rest) if rest.HasField("tools") else None
    for taken in ("prompt_token_ids", "tools"):
        rest.ClearField(taken)
    fields = MessageToDict(rest, preserving_proto_field_name=True) | {"tools": tools}
    if (ids is None) == ("prompt" not in fields):
        count = "only one of" if ids else "one of"
        raise ApiError(422, f"set {count} 'prompt' and 'prompt_token_ids', and not empty", param="prompt")
    try:
        return CompletionBody.model_validate(fields if ids is None else {**fields, "prompt": ids})
    except ValidationError as error:
        raise invalid_fields(error.errors()) from error


def _shorten(request: pb.CompletionRequest) -> None:
    """Leave of each list one entry too many at most: that is refused as well, and making Python of more takes long."""
    if request.HasField("tools"):
        del request.tools.values[MAX_TOOLS + 1 :]
    del request.stop[MAX_STOP_STRINGS + 1 :]
    del request.stop_token_ids[MAX_STOP_TOKENS + 1 :]
    for surplus in list(request.logit_bias)[MAX_BIASED_TOKENS + 1 :]:
        del request.logit_bias[surplus]


def _tool_names(request: pb.CompletionRequest) -> list[Any]:
    """The names; for any other value what REST refuses in the right words, since NaN has no JSON."""
    entries = [(value.WhichOneof("kind"), value) for value in request.tools.values]
    others: dict[str | None, Any] = {"struct_value": {}}
    return [value.string_value if kind == "string_value" else others.get(kind) for kind, value in entries]


def renamed(error: ApiError, request: pb.CompletionRequest) -> ApiError:
    """``error`` with the field's name in ``request`` where REST has another one for it."""
    if request.prompt or not request.prompt_token_ids or (error.param or "").partition(".")[0] != "prompt":
        return error
    param = (error.param or "").replace("prompt", "prompt_token_ids", 1)
    message = error.message.replace("'prompt", "'prompt_token_ids")
    return ApiError(error.status, message, type=error.type, param=param, code=error.code, headers=error.headers)


def message_of(event: Event, progress: Progress) -> pb.CompletionEvent | None:
    """``event``, which ``progress`` has taken; ``None`` for what no message reports."""
    match event:
        case TextDelta(text, tokens):
            wanted = progress.plan.token_ids or progress.plan.logprobs is not None
            return pb.CompletionEvent(text_delta=pb.TextDelta(text=text, tokens=_tokens(tokens) if wanted else ()))
        case CallStarted(ApiCall(tool, input), offset):
            return pb.CompletionEvent(call_started=pb.CallStarted(tool=tool, input=input, offset=offset))
        case CallFinished():
            return pb.CompletionEvent(call_finished=_tool_call(progress.tool_calls[-1]))
        case Finished():
            return pb.CompletionEvent(
                finished=pb.Finished(
                    finish_reason=progress.finish_reason,
                    timed_out=progress.timed_out,
                    tool_calls=map(_tool_call, progress.tool_calls),
                    usage=pb.Usage(**total_usage([progress], 1).model_dump()),
                )
            )
        case _:
            return None


def _tool_call(call: ToolCall) -> pb.ToolCall:
    # What a tool sent may hold half of a surrogate pair, which JSON can carry and a message cannot.
    fields: dict[str, Any] = {
        name: _encodable(value) if isinstance(value, str) else value for name, value in call.model_dump().items()
    }
    return pb.ToolCall(**fields)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _tokens(tokens: Iterable[TokenLogprob]) -> Iterable[pb.Token]:
    for token in tokens:
        top = [pb.TopToken(id=id, logprob=logprob) for id, logprob in token.top]
        yield pb.Token(id=token.id, logprob=token.logprob, top=top)
