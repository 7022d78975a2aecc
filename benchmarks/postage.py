"""An HTTP API that knows nothing of tools, to be taught to a model: what it costs to send a parcel.

python benchmarks/postage.py &
toolformer teach benchmarks/postage.toml --proposals demonstrations
"""

from __future__ import annotations

import re
from typing import Final

import uvicorn
from fastapi import FastAPI, HTTPException

PORT: Final = 8111
_BASE: Final = {
    "France": 6.4, "Peru": 14.9, "Japan": 12.3, "Kenya": 13.75, "Norway": 8.2, "Chile": 15.1, "India": 11.6,
    "Malta": 7.8,
}  # fmt: skip
"""Euros for an empty parcel to a country."""
_PER_KG: Final = 2.35
_PARCEL: Final = re.compile(r"(\d+(?:\.\d+)?) (g|kg) to (\w+)")

app = FastAPI(title="Postage")


@app.get("/health")
def health() -> dict[str, str]:
    """The API is up."""
    return {}


@app.get("/quote")
def quote(parcel: str) -> dict[str, dict[str, str]]:
    """The price of a parcel such as ``250 g to Peru``; 404 if it is none, or its country is not served."""
    found = _PARCEL.fullmatch(parcel.strip())
    if found is None or found[3] not in _BASE:
        raise HTTPException(404, "write a weight and a country, such as 250 g to Peru")
    kilograms = float(found[1]) / (1000 if found[2] == "g" else 1)
    return {"price": {"amount": f"{_BASE[found[3]] + _PER_KG * kilograms:.2f}", "currency": "EUR"}}


if __name__ == "__main__":
    uvicorn.run(app, port=PORT, log_level="warning")
