"""Where a sentence ends, in a stream of text.

Simple rules: ``.``, ``!``, ``?`` and ``…`` end a sentence where a space follows and then no small letter. A full stop
does not after an abbreviation, a single capital (``J. Bach``) or a list's number at a line's beginning. A line end and
the marks ``。！？।`` always do."""

from __future__ import annotations

import re
from typing import Final

_ENDS: Final = ".!?…"
_ENDS_ALONE: Final = "。！？।"
_CLOSING: Final = "\"'”’»)]*_"
_OPENING: Final = "\"'“‘«([*_"
_ABBREVIATIONS: Final = re.compile(
    r"dr|mrs?|ms|prof|st|mt|vs|cf|ca|approx|vol|fig|nr|dept|gen|col|capt|lt|sgt|rev|e\.g|i\.e|u\.s|u\.k"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)
"""Those behind which a capital or a number often goes on with the sentence; without their last full stop."""


class SentenceEnd:
    """Passes text on up to the end of its first sentence, which may have begun ``before`` it."""

    def __init__(self, before: str = "") -> None:
        words = before.rpartition("\n")[2].split()
        self._word = words.pop() if words and not before[-1].isspace() else ""
        """What came since the last space."""
        self._at_line_start = not words
        """Whether that word is the first of its line."""
        self._begun = False
        """Whether anything but space was passed on."""
        self._ending = False
        """Whether the newest character ends the sentence if a space follows."""
        self._held = ""
        """The space behind it."""
        self.ended = False

    def feed(self, text: str) -> str:
        """What of ``text`` can be passed on; :attr:`ended` says whether the sentence is over."""
        passed = ""
        for character in text:
            space = character.isspace()
            if self._held and not space:
                if not character.islower():
                    self.ended = True
                    return passed
                passed += self.flush()
            if character == "\n" and self._begun:
                self.ended = True
                return passed
            if space and self._ending:
                self._held += character
                continue
            passed += character
            if space:
                self._at_line_start &= not self._word
                self._word = ""
                continue
            self._begun = True
            self._word += character
            if character not in _CLOSING:
                self._ending = character in _ENDS and not self._goes_on()
            if character in _ENDS_ALONE:
                self.ended = True
                return passed
        return passed

    def saw_call(self) -> None:
        """A call is shown here."""
        self._begun = True

    def flush(self) -> str:
        """What was held: the sentence goes on, or the text ends."""
        held, self._held, self._ending = self._held, "", False
        if held:
            self._word, self._at_line_start = "", False
        return held

    def _goes_on(self) -> bool:
        """Whether the mark at the end of the word so far is a full stop that ends no sentence."""
        if not self._word.endswith(".") or self._word.endswith(".."):
            return False
        stem = self._word[:-1].lstrip(_OPENING)
        initial = len(stem) == 1 and stem.isupper() and stem != "I"
        return initial or bool(_ABBREVIATIONS.fullmatch(stem)) or (self._at_line_start and stem.isdecimal())
