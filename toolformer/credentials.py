"""The API key with which the command and the jobs ask a gateway."""

from __future__ import annotations

import os
from collections.abc import Mapping


def gateway_credentials(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The header that carries the key of ``TOOLFORMER_API_KEY``; none where it is not set."""
    key = environ.get("TOOLFORMER_API_KEY", "").strip()
    return {"Authorization": f"Bearer {key}"} if key else {}
