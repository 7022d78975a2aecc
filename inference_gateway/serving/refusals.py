"""Who may come in, and what those who may not are answered."""

from __future__ import annotations

import math

from inference_gateway.api_keys import ApiKeys
from inference_gateway.quotas import OverQuota
from toolformer.http_api import ApiError


def client_of(keys: ApiKeys, authorization: str) -> str | None:
    """The name of the key in ``authorization``, ``Bearer <key>``; ``None`` where no keys are asked for.

    Raises:
        ApiError: 401 if it holds none of ``keys``.
    """
    if not keys.required:
        return None
    scheme, _, presented = authorization.partition(" ")
    client = keys.name_of(presented.strip()) if scheme.lower() == "bearer" else None
    if client is None:
        raise _refusal(given=bool(presented))
    return client


def no_room(over: OverQuota) -> ApiError:
    """The error for a client that is not let in now."""
    seconds = max(1, math.ceil(over.retry_after))
    status, code = (503, "busy") if over.everybody else (429, "rate_limit_exceeded")
    return ApiError(status, f"{over}; try again in {seconds} s", code=code, headers={"Retry-After": str(seconds)})


def _refusal(*, given: bool) -> ApiError:
    if given:
        message = "the API key is not one of this gateway's; check it, or ask its operator for one"
        challenge = 'Bearer realm="toolformer", error="invalid_token"'
        return ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": challenge})
    message = "an API key is needed; send it as 'Authorization: Bearer <key>'"
    return ApiError(401, message, code="missing_api_key", headers={"WWW-Authenticate": 'Bearer realm="toolformer"'})
