"""The texts of a run: C* (or C) as `training_jobs.merge` writes it, and held-out texts to measure perplexity on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.console import Console

from demo_world.splits import stable_hash
from toolformer.api_call import MalformedCall
from toolformer.tools import UnknownTool
from training_jobs.corpora.web.readers import CorpusError, Read, read
from training_jobs.errors import NothingKept, StageError
from training_jobs.filter.judging import KEEPING
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.merge.choosing import MergeRule, drawn_by_tool
from training_jobs.merge.putting import calls_in, joined, plain
from training_jobs.nothing_kept import check_kept
from training_jobs.records import Merged, Plain, RecordError
from training_jobs.text_encoder import Encoded, TextEncoder

Text = Merged | Plain


@dataclass(frozen=True, slots=True)
class TextCounts:
    """What became of the texts of C*."""

    texts: int
    tokens: int
    calls: int
    cut: int
    """Texts that were longer than the sequence length."""
    calls_cut: int
    """Calls that were cut off with a text's end."""

    def __str__(self) -> str:
        cut = f"; {self.cut:,} cut to the sequence length, {self.calls_cut:,} calls lost" if self.cut else ""
        return f"{self.texts:,} texts, {self.tokens:,} tokens, {self.calls:,} calls{cut}"


def read_texts(paths: Sequence[Path], times: Sequence[int] = ()) -> tuple[list[Text], dict[str, int]]:
    """The texts of C* or C in ``paths``, in order, and by id how often a pass goes over each: texts of the first of
    ``paths`` as often as the first of ``times`` says, and so on, or all of them once.

    Raises:
        NothingKept: if there is no text.
        StageError: if there is not one of ``times`` for each of ``paths``, a file cannot be read, a line is no text, or
            two are of the same id; the message names file and line.
    """
    if times and len(times) != len(paths):
        raise StageError(f"--times: {len(times)} numbers for {len(paths)} files of --texts: give one for each")
    read = [_read(path) for path in paths]
    texts = [text for of_file in read for text in of_file]
    if not texts:
        raise NothingKept(f"--texts: {', '.join(map(str, paths))} has no texts; {_why_none(paths)}")
    [(id_, found)] = Counter(text.id for text in texts).most_common(1)
    if found > 1:
        raise StageError(f"--texts: {id_!r} is there {found} times: name files that have no text in common")
    often = {text.id: n for of_file, n in zip(read, times or [1] * len(read), strict=True) for text in of_file}
    return texts, often


def _why_none(paths: Sequence[Path]) -> str:
    """Why C* has no text, by the filter's files of its run, where they are there."""
    files = [file for path in paths for file in sorted(path.parent.parent.glob("filter/*.jsonl"))]
    filtered = [file for file in files if "." not in file.stem]  # without logs
    try:
        check_kept({f"filter {file.stem}": file for file in filtered}, KEEPING, Console(quiet=True))
    except NothingKept as nothing:
        return str(nothing)
    return "merge again" if filtered else "the filter kept no call; lower its --tau and merge again"


def repeated(encoded: Sequence[Encoded], texts: Sequence[Text], often: Mapping[str, int]) -> list[Encoded]:
    """``encoded``, the ids of ``texts``, each as often as a pass goes over it."""
    return [one for text, one in zip(texts, encoded, strict=True) for _ in range(often[text.id])]


def _read(path: Path) -> list[Text]:
    try:
        with path.open("rb") as file:
            return [_text(line, f"{path}:{number}") for number, line in enumerate(file, start=1) if line.strip()]
    except OSError as error:
        raise StageError(f"--texts: {path} cannot be read ({error.strerror}); run the stage merge first") from error
    except RecordError as error:
        raise StageError(f"--texts: {error}; give a file that the stage merge wrote") from error


def _text(line: bytes, where: str) -> Text:
    kind: type[Text] = Merged if b'"gains"' in line else Plain
    return kind.from_line(line, where)


def examples_of(texts: Sequence[Text], recipe: FinetuneRecipe) -> list[Text]:
    """``texts`` with calls of each tool in at most ``examples_per_tool`` of them: the rule of the merge, which drops a
    tool's calls from texts that are not drawn for it, and a text without calls. Plain texts stay as they are.

    Raises:
        NothingKept: if no text is left.
    """
    rule = MergeRule(recipe.examples_per_tool, seed=recipe.seed)
    of_tool = drawn_by_tool(((call.tool, text.id) for text in texts for call in calls_in(text.segments)), rule)
    found: list[Text] = []
    for text in texts:
        if isinstance(text, Plain):
            found.append(text)
            continue
        chosen = [text.id in of_tool[call.tool] for call in calls_in(text.segments)]
        if any(chosen):
            keeps = iter(chosen)
            segments = joined(one for one in text.segments if isinstance(one, str) or next(keeps))
            gains = tuple(gain for gain, keep in zip(text.gains, chosen, strict=True) if keep)
            found.append(Merged(text.id, tuple(segments), gains))
    if not found:
        named = ", ".join(repr(text.id) for text in texts[:3])
        raise NothingKept(f"--texts: none of the {len(texts):,} texts has a call, such as {named}; merge them again")
    return found


def encode_texts(
    texts: Sequence[Text], encoder: TextEncoder, recipe: FinetuneRecipe
) -> tuple[list[Encoded], TextCounts]:
    """Ids of ``texts``, cut to the sequence length.

    Raises:
        StageError: if a call's tool is unknown, or a call has no result.
    """
    whole = []
    for text in texts:
        begin = stable_hash("begin", str(recipe.seed), text.id) % 1_000_000 < recipe.begin_share * 1_000_000
        try:
            whole.append(encoder.encode(text.segments, begin=begin))
        except UnknownTool as unknown:
            raise StageError(f"--texts: {text.id!r}: {unknown}; name its file in TOOLFORMER_TOOLS") from unknown
        except MalformedCall as error:
            raise StageError(f"--texts: {text.id!r}: {error}; merge again") from error
    encoded = [one.cut(recipe.sequence_length) for one in whole]
    for text, one in zip(texts, encoded, strict=True):
        if len(one.ids) < 2:
            limit = recipe.sequence_length
            raise StageError(
                f"--texts: {text.id!r}: its first call alone is longer than --sequence-length {limit}: raise it"
            )
    return encoded, TextCounts(
        texts=len(encoded),
        tokens=sum(len(one.ids) for one in encoded),
        calls=sum(len(one.calls) for one in encoded),
        cut=sum(one is not before for one, before in zip(encoded, whole, strict=True)),
        calls_cut=sum(len(before.calls) - len(one.calls) for one, before in zip(encoded, whole, strict=True)),
    )


def read_held_out(files: Sequence[Path], count: int, texts: Sequence[Text]) -> list[str]:
    """The first ``count`` held-out texts of ``files`` (CCNet, JSON lines, Parquet: `training_jobs.corpora.web`).

    Raises:
        StageError: if a file cannot be read, there is none, or one of them is among ``texts``, which are trained on.
    """
    try:
        found = [one.document.text for one in islice(_all(files), count)]
    except CorpusError as error:
        raise StageError(f"--held-out: {error}") from error
    if not found:
        raise StageError(f"--held-out: {', '.join(map(str, files))}: no texts: perplexity cannot be measured on them")
    trained = {plain(text.segments): text.id for text in texts}
    for text in found:
        if text in trained:
            raise StageError(f"--held-out: {trained[text]!r} is trained on too: hold out texts that --texts lacks")
    return found


def _all(files: Sequence[Path]) -> Iterator[Read]:
    for path in files:
        for one in read(path):
            if one.document.text:
                yield one


def tool_counts(texts: Sequence[Text]) -> dict[str, int]:
    """Texts with calls of each tool, by name."""
    counts = Counter(tool for text in texts for tool in {call.tool for call in calls_in(text.segments)})
    return dict(sorted(counts.items()))
