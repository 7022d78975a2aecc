"""The Toolformer decoding machine (section 4.2 of the paper): pure, no I/O, one completion.

A backend asks :meth:`DecodingMachine.rule` what the next token must obey, chooses a token, and hands it to
:meth:`DecodingMachine.accept`. What follows comes back as actions: text to show, a call to make, tokens to drop,
the end. At ``->`` the machine pauses until :meth:`~DecodingMachine.splice` brings the answer or
:meth:`~DecodingMachine.give_up` says that there is none.

**What a bracket is.** Where calls can be made, the API-start token `` [`` is taken if it is likely enough. It opens a
call: of the next tokens only those are allowed that lead to an offered tool's name and its parenthesis. Any other
bracket is text, unless a tool's name and parenthesis follow; then it is a call too, or is taken back if that call
cannot be made. Where the request switches calls off, `` [`` has probability 0 (footnote 5 of the paper), and all other
brackets are text. Once all calls are made brackets are text; when a tool's name follows one all the same, it is taken
back, and `` [`` has probability 0 from there on. A ``]`` that closes no bracket of prompt or text is what is left of a
call that was not made, and is never chosen. In a vocabulary with special tokens for a call's marks, nothing else is a
bracket: such an opening is always a call, and is not chosen where none can be made.

**A call that is taken back** costs the text nothing: its place may not open a call again, and the dropped tokens do not
count against ``max_tokens``. As many as that again may be spent on them; then an open call is taken back, and none is
begun any more. So a completion has as many tokens as were asked for and makes at most twice as many.

Text passes three stages: the first finds brackets and keeps a call's text back until its result is in, the second finds
the sentence's end if the request asks for that, the third stop strings. So nothing that was shown is ever taken
back."""

from __future__ import annotations

import copy
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from inference_gateway.actions import Action, CallAhead, Keep
from inference_gateway.call_budget import CallBudget
from inference_gateway.call_vocabulary import BARE_OPEN, CallForm, CallVocabulary
from inference_gateway.core import (
    CallFinished,
    CallStarted,
    CompletionRequest,
    Finished,
    FinishReason,
    PromptScored,
    TextDelta,
    TokenLogprob,
    ToolCallRecord,
    Usage,
)
from inference_gateway.repeats import in_circles
from inference_gateway.sentence import SentenceEnd
from inference_gateway.token_text import TextState, TokenText
from toolformer.api_call import ARROW, CLOSE, GAP, OPEN, ApiCall, SplicedResult, scan_call
from toolformer.trigger import Match, TriggerMatcher


@dataclass(frozen=True, slots=True)
class StepRule:
    """What choosing the next token must obey.

    ``start_top_k`` > 0: take the API-start token if it is among that many most likely tokens. ``banned``: none of
    these. ``allowed``: one of these, where there are any."""

    start_top_k: int = 0
    banned: frozenset[int] = frozenset()
    allowed: frozenset[int] = frozenset()

    def forbids(self, token: int) -> bool:
        """Whether ``token`` may not be chosen."""
        return token in self.banned or (bool(self.allowed) and token not in self.allowed)


_NO_RULE: Final = StepRule()


class Phase(enum.Enum):
    """Where a completion stands."""

    TEXT = "text"
    CALL = "call"
    PAUSED = "paused"
    DONE = "done"


@dataclass(slots=True)
class _Snapshot:
    """What must be known to continue as if a token had never come."""

    text: TextState
    held: str


@dataclass(slots=True)
class _OpenCall:
    """A call being written."""

    first_token: int
    """Index, in the completion, of the token that holds the opening bracket."""
    snapshot: _Snapshot
    before_arrow: TextState
    """The text's state before the newest token, from which on it is read again if more than ``->`` came with it."""
    before: str
    """Text that is not the call's but must wait with it, since it came in the same token as the bracket."""
    opening: str
    forced: bool
    text: str = ""
    call: ApiCall | None = None
    ahead: ApiCall | None = None
    """The call that was reported before its arrow."""
    overshoot: int = 0
    """Characters after ``->``, or from ``]`` on, that came in the same token."""
    arrow: str = ""
    """`` ->`` where the model closed the call without it."""


@dataclass(slots=True)
class _Tally:
    made: int = 0
    """Tokens chosen, the dropped ones included."""
    spliced: int = 0
    rolled_back: int = 0


class DecodingMachine:
    """Turns the tokens of one completion into text, calls and an end.

    ``tools`` maps the name of each tool that there is to its form; ``request.tools`` are those that may be called."""

    def __init__(self, request: CompletionRequest, vocabulary: CallVocabulary, tools: Mapping[str, CallForm]) -> None:
        self._request = request
        self._vocabulary = vocabulary
        self._tools = tools
        self._calls = CallBudget(request, tools)
        self._quoted = frozenset(name for name, form in tools.items() if form.quoted)
        self.ids: list[int] = []
        """The completion's tokens so far, spliced ones included, those of an open call too."""
        self._brackets = [0]
        """How many brackets are open before the first of them, and after each."""
        for token in filter(vocabulary.brackets.__contains__, request.prompt_ids):
            self._brackets[0] = self._brackets_after(token)
        self.phase = Phase.TEXT
        self._text = TokenText()
        self._marks = vocabulary.tokenizer.marks
        self._openings = TriggerMatcher((OPEN, BARE_OPEN))
        self._sentence = SentenceEnd(self._prompt_end()) if request.stop_at == "sentence" else None
        self._stops = TriggerMatcher(request.stop)
        sampling = request.sampling
        self._text_ends = frozenset() if sampling.ignore_eos else frozenset(vocabulary.end_ids)
        self.end_ids = self._text_ends | frozenset(sampling.stop_token_ids)
        """Tokens that end the completion, as this request has it."""
        self._open: _OpenCall | None = None
        self._start_banned = False
        self._calls_over = False
        """Whether the model began another call after the last one it may make."""
        self._tally = _Tally()
        self._length = 0
        """Characters of text so far, call text included where it is shown."""
        self.cached_tokens = 0
        """Prompt tokens that the backend did not compute; set by the backend, reported in the usage."""

    # What a backend needs ------------------------------------------------------------------------------------------

    def rule(self) -> StepRule:
        """What the next token must obey."""
        request, vocabulary = self._request, self._vocabulary
        if self.phase is Phase.CALL and self._open is not None and self._open.forced and "(" not in self._open.text:
            return StepRule(allowed=vocabulary.names.following(self._calls.offered, self._open.text))
        if self.phase is not Phase.TEXT or request.plain:
            return _NO_RULE
        closers = _NONE if self._brackets[-1] else vocabulary.closers
        if self._start_banned or self._spent:
            return _rule(0, vocabulary.openings, closers)
        over = self._calls_over or (self._marks.special and not self._calls.left)
        if self._calls.switched_off or over or self._standing + 1 >= request.max_tokens:
            return _rule(0, vocabulary.starts, closers)
        return _rule(request.api_top_k if self._calls.left else 0, closers, _NONE)

    def accept(
        self,
        token: int,
        *,
        forced: bool = False,
        as_text: bool = False,
        logprob: float | None = None,
        top: tuple[tuple[int, float], ...] = (),
    ) -> list[Action]:
        """Take the chosen token. ``forced``: it is an API-start token that was taken for being among the top k.
        ``as_text``: it opens no call, since it is one that :meth:`rule` bans and that could not be avoided.
        ``logprob`` and ``top`` are passed on with the token's text; see :class:`~inference_gateway.core.TokenLogprob`.

        Raises:
            RuntimeError: if the machine is paused or done.
        """
        if self.phase not in (Phase.TEXT, Phase.CALL):
            raise RuntimeError(f"a token came while the completion was {self.phase.value}")
        if self._request.max_tokens == 0:  # only the prompt was asked for
            return self.finish("length")
        self._tally.made += 1
        actions: list[Action] = []
        in_call = self._open is not None and self._is_attempt(self._open)
        if token in (self._text_ends if in_call else self.end_ids):
            if not in_call:
                return self._end_of_text(TokenLogprob(token, logprob, top, self._length))
            self._tally.rolled_back += 1
            self._refuse(actions, "unfinished_call", "the text ended inside the call")
        else:
            self._append([token])
            snapshot = _Snapshot(self._text.state, self._openings.held)
            # An ignored end is a token without text.
            data = b"" if token in self._vocabulary.end_ids else self._bytes(token)
            chunk = self._text.read(token, data, logprob, top)
            if self.phase is Phase.TEXT:
                self._start_banned = False
                opens = not self._marks.special or token in self._vocabulary.openings
                if as_text or not opens:
                    self._pass_on(self._openings.held + chunk, actions)
                    self._openings.restore("")
                else:
                    self._read_text(chunk, snapshot, forced or self._marks.special, actions)
            else:
                self._read_call(chunk, snapshot, actions)
        self._keep_to_budget(actions)
        if self.phase is Phase.TEXT and self._in_circles:
            actions += self.finish("stop")
        return actions

    @property
    def too_short(self) -> bool:
        """Whether the text may not end yet."""
        return self._standing < self._request.sampling.min_tokens

    def describe_prompt(self, scores: Iterable[tuple[float | None, tuple[tuple[int, float], ...]]]) -> PromptScored:
        """The prompt's tokens with their log probabilities and alternatives."""
        text = TokenText()
        for token, (logprob, top) in zip(self._request.visible_prompt_ids, scores, strict=True):
            text.read(token, self._bytes(token), logprob, top)
        return PromptScored(text.waiting)

    def splice(self, result: SplicedResult) -> list[Action]:
        """Put the result behind ``->`` and go on.

        Raises:
            RuntimeError: if the machine is not paused.
        """
        opened = self._paused()
        actions: list[Action] = []
        keep, append = len(self.ids), result.ids
        if opened.overshoot or self._text.incomplete:
            # The token that completed `->` brought more: it gives way to one that ends there.
            chunk = self._bytes(self.ids[-1]).decode("utf-8", errors="ignore")
            self._drop(1)
            self._text.forget(1, opened.before_arrow)
            keep -= 1
            ending = self._vocabulary.tokenizer.encode(chunk[: len(chunk) - opened.overshoot])
            append = (*ending, *(self._marks.arrow if opened.arrow else ()), *append)
        self._append(append)
        for token in append:
            self._text.read(token, self._bytes(token))
        if not self._request.show_calls:
            self._text.hide(self._length + len(opened.before))
        self._tally.spliced += len(append)
        self._open, self.phase = None, Phase.TEXT
        actions.append(Keep(keep, append))
        self._pass_on(opened.before, actions)
        if self._request.show_calls and self.phase is Phase.TEXT:
            call_text = opened.text[: len(opened.text) - opened.overshoot].removesuffix(GAP) + opened.arrow
            self._show(f"{opened.opening}{call_text}{GAP}{result.text}{CLOSE}", actions)
        self._keep_to_budget(actions)
        return actions

    def give_up(self) -> list[Action]:
        """There is no result: the call's tokens are dropped, and its place may not start a call again.

        Raises:
            RuntimeError: if the machine is not paused.
        """
        actions: list[Action] = []
        self._roll_back(self._paused(), actions)
        self._keep_to_budget(actions)
        return actions

    def run_out(self) -> list[Action]:
        """The model takes no more tokens: the end, or a call that is being written is taken back, which makes room."""
        actions: list[Action] = []
        if self.phase is Phase.CALL and self._open is not None and self._is_attempt(self._open):
            self._refuse(actions, "unfinished_call", "the model's length was reached inside the call")
        elif self.phase is not Phase.PAUSED:  # else the result will not fit, and the call is dropped for that
            actions = self.finish("length")
        return actions

    def finish(self, reason: FinishReason, message: str = "") -> list[Action]:
        """End the completion from any phase; a call that is not complete is dropped. Does nothing when already done."""
        if self.done:
            return []
        actions: list[Action] = []
        if self.phase is Phase.PAUSED:
            self._roll_back(self._paused(), actions)
        elif self._open is not None and self._is_attempt(self._open):
            self._refuse(actions, "unfinished_call", "the completion was ended inside the call")
        elif self._open is not None:
            self._take_as_text(self._open, self._open.text, actions)
        match = self._openings.flush()
        self._pass_on(match.text + (match.trigger or ""), actions)
        if self._sentence is not None and not self.done:
            self._look_for_stops(self._sentence.flush(), actions)
        if not self.done:
            self._end(reason, actions, message, whole=True)
        return actions

    @property
    def done(self) -> bool:
        """Whether the completion has ended."""
        return self.phase is Phase.DONE

    @property
    def usage(self) -> Usage:
        tally = self._tally
        hidden = self._request.hidden
        return Usage(
            prompt_tokens=len(self._request.prompt_ids) - hidden,
            completion_tokens=self._standing,
            spliced_tokens=tally.spliced,
            rolled_back_tokens=tally.rolled_back,
            cached_tokens=max(0, self.cached_tokens - hidden),
            hidden_tokens=hidden,
        )

    # Reading -------------------------------------------------------------------------------------------------------

    @property
    def _standing(self) -> int:
        """Tokens that the model made and that were not dropped."""
        return self._tally.made - self._tally.rolled_back

    @property
    def _in_circles(self) -> bool:
        request = self._request
        goes_on = request.plain or request.sampling.ignore_eos or self.too_short
        return not goes_on and in_circles(self.ids, request.max_repeats, self._bytes)

    @property
    def _spent(self) -> bool:
        """Whether nothing is left to spend on tokens that may be dropped."""
        return self._tally.rolled_back >= self._request.max_tokens

    def _read_text(self, chunk: str, snapshot: _Snapshot, forced: bool, actions: list[Action]) -> None:
        if self._request.plain or self._calls.switched_off or self._spent:
            self._pass_on(self._openings.held + chunk, actions)
            self._openings.restore("")
            return
        match = self._openings.feed(chunk)
        if match.trigger is None:
            self._pass_on(match.text, actions)
            return
        if self._ends_sentence(match.text + match.trigger):
            self._pass_on(match.text + match.trigger, actions)
            return
        self._open = _OpenCall(len(self.ids) - 1, snapshot, snapshot.text, match.text, match.trigger, forced)
        self.phase = Phase.CALL
        if match.rest:
            self._read_call(match.rest, snapshot, actions)

    def _read_call(self, chunk: str, snapshot: _Snapshot, actions: list[Action]) -> None:
        opened = self._open
        assert opened is not None
        earlier, opened.text = opened.text, opened.text + chunk
        opened.before_arrow = snapshot.text
        scan = scan_call(opened.text, self._quoted)
        if scan.refused or not any(self._may_become(opened, name) for name in self._tools):
            if opened.forced:
                self._roll_back(opened, actions)
                return
            self._take_as_text(opened, earlier, actions)
            if self.phase is Phase.TEXT:  # what came last may hold another bracket
                self._read_text(chunk, _Snapshot(snapshot.text, ""), False, actions)
            return
        if not self._calls.left and opened.text.partition("(")[0] in self._tools:
            self._calls_over = True
            self._roll_back(opened, actions)
            return
        if scan.tool is None:
            return
        if scan.tool not in self._calls.offered:
            self._roll_back(opened, actions)
            return
        written = opened.text[: scan.end] if scan.call is not None else opened.text
        another = any(f"{OPEN}{name}(" in written for name in self._tools)
        if another or "\n" in written or "\r" in written or "\ufffd" in written:
            self._refuse(actions, "malformed_call", "another call, a line end or bytes that are no UTF-8 stand in it")
            return
        if scan.call is None:
            limit = self._tools[scan.tool].max_input_tokens
            if len(self.ids) - opened.first_token > limit + _HEAD_TOKENS:
                self._refuse(actions, "input_too_long", f"the input is longer than {limit} tokens")
            elif self._request.early_dispatch:
                self._look_ahead(opened, actions)
            return
        # A special arrow reads as `->` and the space behind it.
        at_arrow = self._marks.special and self.ids[-1] in self._marks.arrow
        opened.call, opened.overshoot = scan.call, 0 if at_arrow else len(opened.text) - scan.end
        closed = scan.mark == CLOSE
        if closed and not self._request.hidden:
            self._refuse(actions, "no_result_asked", "the call was closed without '->'")
        elif scan.call in self._calls.made:
            self._refuse(actions, "repeated_call", "the same call was made before in this completion")
        else:
            if closed:
                opened.overshoot, opened.arrow = opened.overshoot + len(CLOSE), ARROW
            self._calls.spend(scan.call)
            self.phase = Phase.PAUSED
            actions.append(CallStarted(scan.call, self._length + len(opened.before)))

    def _look_ahead(self, opened: _OpenCall, actions: list[Action]) -> None:
        """Report the call that is made if ``->`` comes next. Where a parenthesis is still open, a later one will close
        the input."""
        text = opened.text.rstrip()
        if not text.endswith(")") or text.count("(") != text.count(")"):
            return
        call = scan_call(text + ARROW, self._quoted).call
        if call is not None and call != opened.ahead and call not in self._calls.made:
            opened.ahead = call
            actions.append(CallAhead(call))

    def _may_become(self, opened: _OpenCall, name: str) -> bool:
        """Whether an open bracket's text goes on, or can go on, to be ``name`` and its parenthesis."""
        head = f"{name}("
        return head.startswith(opened.text) or opened.text.startswith(head)

    def _is_attempt(self, opened: _OpenCall) -> bool:
        """Whether an open bracket is a call as far as it goes, and not perhaps the model's own punctuation."""
        return opened.forced or bool(opened.text)

    def _keep_to_budget(self, actions: list[Action]) -> None:
        """Take back a call that cannot be ended within the limits, and end the completion that has all its tokens."""
        limit = self._request.max_tokens
        if self.phase is Phase.CALL and self._open is not None:
            spent = self._tally.rolled_back + len(self.ids) - self._open.first_token
            if self._standing >= limit or spent >= limit:
                if self._is_attempt(self._open):
                    self._refuse(actions, "unfinished_call", f"the limit of {limit} tokens was reached inside the call")
                else:
                    self._take_as_text(self._open, self._open.text, actions)
        if self.phase is Phase.TEXT and self._standing >= limit:
            actions += self.finish("length")

    def _take_as_text(self, opened: _OpenCall, text: str, actions: list[Action]) -> None:
        """The model's own bracket was no call: it and the ``text`` behind it are plain text."""
        self._open, self.phase = None, Phase.TEXT
        self._pass_on(opened.before + opened.opening + text, actions)

    def _refuse(self, actions: list[Action], code: str, message: str) -> None:
        """Take the open call back and report it; its tool and input are "" as far as they are not known yet."""
        opened = self._open
        assert opened is not None
        name, parenthesis, written = opened.text.partition("(")
        tool, written = name if parenthesis else "", written.removeprefix('"')
        if opened.call is not None:
            written = opened.call.input
        if tool or opened.forced:
            offset = self._length + len(opened.before)
            actions.append(CallFinished(ToolCallRecord(tool, written, None, f"{code}: {message}", offset, 0.0)))
        self._roll_back(opened, actions)

    def _roll_back(self, opened: _OpenCall, actions: list[Action]) -> None:
        self._tally.rolled_back += len(self.ids) - opened.first_token
        self._text.forget(len(self.ids) - opened.first_token, opened.snapshot.text)
        self._drop(len(self.ids) - opened.first_token)
        self._openings.restore(opened.snapshot.held)
        self._open, self.phase, self._start_banned = None, Phase.TEXT, True
        actions.append(Keep(len(self.ids)))

    def _append(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self.ids.append(token)
            known = token in self._vocabulary.brackets
            self._brackets.append(self._brackets_after(token) if known else self._brackets[-1])

    def _drop(self, tokens: int) -> None:
        """Forget the last ``tokens`` tokens, at least one."""
        del self.ids[-tokens:], self._brackets[-tokens:]

    def _brackets_after(self, token: int) -> int:
        """How many brackets are open after the last token if ``token`` follows; a ``]`` without one closes none."""
        needed, opened = self._vocabulary.brackets[token]
        return max(self._brackets[-1], needed) + opened

    def _paused(self) -> _OpenCall:
        if self.phase is not Phase.PAUSED or self._open is None:
            raise RuntimeError(f"a result came while the completion was {self.phase.value}")
        return self._open

    # Showing -------------------------------------------------------------------------------------------------------

    def _pass_on(self, text: str, actions: list[Action]) -> None:
        """Text that is no call: shown up to the sentence's end or the first stop string."""
        if text and self._sentence is not None and self._standing > self._request.sampling.min_tokens:
            text = self._sentence.feed(text)
        self._look_for_stops(text, actions)
        if self._sentence is not None and self._sentence.ended and not self.done:
            self._end("stop", actions)

    def _look_for_stops(self, text: str, actions: list[Action]) -> None:
        if not text:
            return
        self._length += len(text)
        if 0 < self._standing <= self._request.sampling.min_tokens:  # what ends the text comes behind these
            self._emit(text, actions)
            return
        match = self._stops.feed(text)
        self._emit_match(match, actions)
        if match.trigger is not None:
            self._end("stop", actions)

    def _ends_sentence(self, text: str) -> bool:
        """Whether the sentence is over in or before ``text``."""
        if self._sentence is None:
            return False
        ahead = copy.copy(self._sentence)
        ahead.feed(text)
        return ahead.ended

    def _prompt_end(self) -> str:
        """The prompt's last words."""
        return b"".join(map(self._bytes, self._request.prompt_ids[-_LOOK_BACK:])).decode(errors="replace")

    def _show(self, call_text: str, actions: list[Action]) -> None:
        """A finished call's text: stop strings are not looked for in it, nor across it."""
        match = self._stops.flush()
        self._emit_match(match, actions)
        if match.trigger is not None:
            self._end("stop", actions)
            return
        if self._sentence is not None:
            self._sentence.saw_call()
        self._length += len(call_text)
        self._emit(call_text, actions)

    def _end(self, reason: FinishReason, actions: list[Action], message: str = "", *, whole: bool = False) -> None:
        """``whole``: no stop cuts the text off, so tokens without a whole character are part of it too."""
        if self._stops.held:
            match = self._stops.flush()
            self._emit_match(match, actions)
            if match.trigger is not None:
                reason, message, whole = "stop", "", False
        if cut := self._text.cut(everything=whole and self._emits_all):
            last = actions.pop() if actions and isinstance(actions[-1], TextDelta) else TextDelta("")
            assert isinstance(last, TextDelta)
            actions.append(TextDelta(last.text, last.tokens + cut))
        self.phase = Phase.DONE
        actions.append(Finished(reason, self.usage, message))

    def _end_of_text(self, token: TokenLogprob) -> list[Action]:
        """The end of the text. A stop token's own text is part of it where the request asks for that."""
        actions: list[Action] = []
        if self._request.include_stop and token.id not in self._vocabulary.end_ids:
            if self._open is not None:
                self._take_as_text(self._open, self._open.text, actions)
            if not self.done:
                self._append([token.id])
                chunk = self._text.read(token.id, self._bytes(token.id), token.logprob, token.top)
                self._pass_on(self._openings.held + chunk, actions)
                self._openings.restore("")
            return [*actions, *self.finish("stop")]
        actions = self.finish("stop")
        if self._emits_all:
            actions.insert(-1, TextDelta("", (token,)))
        return actions

    @property
    def _emits_all(self) -> bool:
        """Whether tokens without text are emitted as well: the end of the text, and half a character at its end. A
        gateway in front of the bare model must know them and what was likely besides: it may take another. A client
        that asks for log probabilities gets one of each token that was made."""
        return self._request.plain or self._request.logprobs is not None

    def _bytes(self, token: int) -> bytes:
        return self._vocabulary.tokenizer.token_bytes(token)

    def _emit_match(self, match: Match, actions: list[Action]) -> None:
        shown = match.trigger if match.trigger and self._request.include_stop else ""
        self._emit(match.text + shown, actions)

    def _emit(self, text: str, actions: list[Action]) -> None:
        if text:
            actions.append(TextDelta(text, self._text.show(len(text))))


_HEAD_TOKENS: Final = 12
"""Room for the opening bracket, a tool's name, parentheses, quotes and ``->`` beside an input's tokens."""

_LOOK_BACK: Final = 16
"""Tokens of the prompt in which the beginning of a sentence that the completion goes on with is looked for."""

_NONE: Final[frozenset[int]] = frozenset()


@lru_cache(64)
def _rule(start_top_k: int, banned: frozenset[int], as_well: frozenset[int]) -> StepRule:
    """Made for every token, so the same few are remembered."""
    return StepRule(start_top_k, banned | as_well)
