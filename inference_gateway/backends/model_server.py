"""The seam between the remote backend and the servers it can use.

Above it, ``remote.py`` and ``remote_session.py`` drive decoding machines. Below it, ``openai.py`` and ``tgi.py`` speak
one protocol each. A server knows nothing of calls: it continues token ids, and says how likely others were."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from inference_gateway.core import SamplingParams
from language_model.tokenizer import ByteLevelTokenizer


class ServerError(Exception):
    """The server gave no answer, or none that can be used. The message says which server and why."""


class RequestRefused(ServerError):  # noqa: N818 - the server's word, not a fault of either side
    """The server does not take this request; another one might be taken."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is, and how patient to be with it.

    ``url``: what is before ``/v1``. ``api_key``: sent as a bearer token. ``model``: which of its models, by
    default its first. ``silence_seconds``: a stream that is silent for so long is dead. ``connections``: at most."""

    url: str
    api_key: str | None = None
    model: str | None = None
    silence_seconds: float = 60.0
    connections: int = 64


@dataclass(frozen=True, slots=True)
class Segment:
    """One request to a server: continue ``ids``.

    ``max_tokens``: at most that many. ``sampling``: its seed is this segment's own. ``top``: most likely tokens wanted
    beside each chosen one. ``logprobs``: whether the chosen one's log probability is wanted. ``banned``: never chosen;
    ``allowed``: only these are chosen, if there are any. Both need a server that takes biases (`Abilities.bans`)."""

    ids: tuple[int, ...]
    max_tokens: int
    sampling: SamplingParams
    top: int = 0
    logprobs: bool = False
    banned: frozenset[int] = frozenset()
    allowed: frozenset[int] = frozenset()
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One token the server chose, its log probability in nats where that is known, and the most likely
    ``(token id, log probability)`` at its place, best first."""

    id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Cached:
    """How many of the segment's tokens the server did not compute; comes before the last steps, if at all."""

    tokens: int


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """The server went no further: ``stop`` at the end of the text, ``length`` at a limit."""

    reason: Literal["stop", "length"]


SegmentItem = Step | Cached | SegmentEnd


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a server was found to do.

    ``model``: its name for the model. ``max_model_len``: tokens of a sequence, where it says. ``top``: most likely
    tokens that it reports at each place; 0 is none, so that a call starts only where the model itself writes its
    beginning. ``bans``: whether it takes biases, which ban tokens and force others. ``sampling_fields``: which of
    `~inference_gateway.core.OPTIONAL_SAMPLING` it takes. ``notices``: what an operator should know."""

    model: str
    max_model_len: int | None = None
    top: int = 0
    bans: bool = False
    sampling_fields: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()


def check_vocabulary(url: str, tokenizer: ByteLevelTokenizer, ids: Sequence[int], text: str) -> None:
    """Whether ``tokenizer`` has the vocabulary of the server, which reported that ``ids`` are ``text``.

    Raises:
        ServerError: if it has not: its ids would be nonsense there.
    """
    marks = {*tokenizer.marks.opening, *tokenizer.marks.arrow, *tokenizer.marks.closing}
    spelt = tokenizer.decode([token for token in ids if token not in tokenizer.special_ids])
    with_marks = tokenizer.decode([token for token in ids if token not in tokenizer.special_ids - marks])
    # Either may end inside a character, or lack a special token's text; a gateway of ours shows that of marks.
    if not any(one.startswith(text.rstrip("\ufffd")) for one in (spelt, with_marks)):
        raise ServerError(
            f"{url} has another vocabulary: its tokens {list(ids)} are {text!r} there and {spelt!r} here; "
            "let TOOLFORMER_MODEL name a directory with the tokenizer.json of the model it serves"
        )


def notices_of(*, ids: bool, exact: bool, top: int, bans: bool) -> tuple[str, ...]:
    """`Abilities.notices` of a server. ``ids``: it takes token ids; ``exact``: it reports the ids of its tokens."""
    notices = []
    if not ids:
        notices.append("it takes no token ids: it encodes text again at each resumption, names of special tokens too")
    if not exact:
        notices.append("it does not report the ids of its tokens: they are found by encoding its text")
    if top:
        notices.append(f"it reports at most {top} likely tokens: a larger 'api_top_k' or 'logprobs' counts as {top}")
    else:
        notices.append("it reports no likely tokens: a call starts only where the model itself writes '['")
    if not bans:
        instead = "the next likely one is taken" if top else "it stays, and a call is plain text"
        notices.append(
            f"it takes no biases: where a token must not be {instead}; calls of tools not offered are dropped"
        )
    return tuple(notices)


class ModelServer(Protocol):
    """A server of a language model. Every method keeps a deadline."""

    @property
    def url(self) -> str: ...

    async def survey(self) -> Abilities:
        """Find out what the server can do, by asking it for a few tokens.

        Raises:
            ServerError: if it does not answer or cannot be used.
        """
        ...

    async def ping(self) -> None:
        """Return if the server answers.

        Raises:
            ServerError: if it does not.
        """
        ...

    def stream(self, segment: Segment) -> AsyncGenerator[SegmentItem, None]:
        """Continue ``segment``, ending with a :class:`SegmentEnd`; closing the generator ends the request.

        Raises:
            ServerError: if the server refuses, dies, falls silent or answers what cannot be read.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
