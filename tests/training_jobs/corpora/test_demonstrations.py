"""The corpus: executed by real services, encoded as at inference, the same bytes every time."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from demo_world.suites import TOOLS
from demo_world.texts import CallSlot, Document, Text, documents
from language_model.token_file import Tokens
from language_model.tokenizer import ByteLevelTokenizer
from tests.training_jobs.servers import tool_services
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry
from training_jobs.corpora.base import __main__ as base
from training_jobs.corpora.base.__main__ import make_base_corpus
from training_jobs.corpora.demonstrations import __main__ as demonstrations
from training_jobs.corpora.demonstrations.__main__ import DOCUMENTS_FILE, make_corpus
from training_jobs.corpora.demonstrations.executing import ExecutedDocument, execute
from training_jobs.errors import StageError
from training_jobs.execute.asking import ExecuteSettings, check_services
from training_jobs.pretrain.rows import MANIFEST_FILE
from training_jobs.pretrain.tokenizer import END_OF_TEXT, train_tokenizer
from training_jobs.records import CallSegment, says
from training_jobs.text_encoder import TextEncoder

COUNT = 400


@pytest.fixture(scope="module")
def registry() -> Iterator[ToolRegistry]:
    with tool_services(text for document in documents(COUNT, seed=0) for text in document.texts) as running:
        yield running


@pytest.fixture(scope="module")
def corpus(registry: ToolRegistry, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpus")
    make_corpus(out, count=COUNT, seed=0, registry=registry)
    return out


def test_the_same_seed_gives_the_same_bytes(corpus: Path, registry: ToolRegistry, tmp_path: Path) -> None:
    again = make_corpus(tmp_path, count=COUNT, seed=0, registry=registry)
    assert again == json.loads((corpus / MANIFEST_FILE).read_text())
    assert again["sha256"].keys() == {DOCUMENTS_FILE, "tokenizer.json", "tokens.safetensors"}


def test_texts_are_counted_by_what_became_of_them(corpus: Path) -> None:
    manifest = json.loads((corpus / MANIFEST_FILE).read_text())
    assert manifest["texts"].keys() >= {"kept: no call", *(f"kept: {tool}" for tool in TOOLS)}
    assert manifest["generated_documents"] == COUNT
    assert manifest["learned_tokens"] < manifest["tokens"]


def test_ids_are_those_of_the_segments_and_results_are_not_learned(corpus: Path, registry: ToolRegistry) -> None:
    encoder = encoder_of(Tokenizer.from_file(str(corpus / "tokenizer.json")), registry)
    tokens = Tokens.load(corpus)
    lines = [json.loads(line)["segments"] for line in (corpus / DOCUMENTS_FILE).read_text().splitlines()]
    assert tokens.documents == len(lines)
    for number, line in enumerate(lines[:50]):
        segments = [one if isinstance(one, str) else CallSegment(**one) for one in line]
        expected = encoder.encode(segments)
        of_document = slice(tokens.starts[number], tokens.starts[number + 1])
        assert tuple(tokens.ids[of_document].tolist()) == expected.ids
        assert tuple(tokens.learned[of_document].tolist()) == expected.learned
        results = [end for _, end in expected.calls]
        assert not any(expected.learned[end - 1] for end in results)


def encoder_of(tokenizer: Tokenizer, registry: ToolRegistry) -> TextEncoder:
    return TextEncoder(ByteLevelTokenizer(tokenizer), registry, end_id=0, mask_results=True, apart=True)


def test_an_end_of_text_in_a_text_is_not_the_mark(registry: ToolRegistry) -> None:
    backend = train_tokenizer(["Today is Friday."] * 10, vocab_size=300)
    encoded = encoder_of(Tokenizer.from_str(backend.to_str()), registry).encode([f"so{END_OF_TEXT}on"])
    assert encoded.ids.count(0) == 1
    assert encoded.ids[-1] == 0
    assert all(encoded.learned)


def test_a_long_result_is_cut_as_at_inference(registry: ToolRegistry) -> None:
    encoder = encoder_of(train_tokenizer(["1"] * 10, vocab_size=300), registry)
    encoded = encoder.encode([CallSegment("Calculator", "1", "9" * 500)])
    limit = registry.get("Calculator").max_result_tokens
    assert encoded.learned.count(False) == limit + 1  # and the closing bracket


def text(before: str, call: CallSlot, after: str, answer: str) -> Text:
    return Text((before, call, after), answer, "key")


async def test_texts_whose_tool_disagrees_or_is_silent_are_dropped(registry: ToolRegistry) -> None:
    right = text("It is", CallSlot("Calculator", "2 + 2"), " 4.", "4")
    wrong = text("It is", CallSlot("Calculator", "2 + 3"), " 4.", "4")
    silent = text("It is", CallSlot("Calculator", "2 / 0"), " 4.", "4")
    plain = Text(("A text. With no call.",))
    async with ToolClient(registry) as client:
        kept, counts = await execute(
            [Document(7, (wrong, right, plain)), Document(8, (silent,))], client, registry, ExecuteSettings()
        )
    called = CallSegment("Calculator", "2 + 2", "4")
    assert kept == [ExecutedDocument(7, ("It is", called, " 4. A text. With no call."))]
    assert counts == {
        "kept: Calculator": 1,
        "kept: no call": 1,
        "dropped: Calculator says something else": 1,
        "dropped: Calculator has no answer": 1,
    }


@pytest.mark.parametrize(
    ("output", "answer", "found"),
    [("408", "408", True),
     ("4080", "408", False), ("1,408", "408", False), ("40.8", "40", False), ("a 408.", "408", True),
     ("Today is Friday, May 6, 2020.", "6", True), ("Today is Friday, May 16, 2020.", "6", False), ("4.", "4", True)],
)  # fmt: skip
def test_an_answer_is_found_as_a_whole(output: str, answer: str, found: bool) -> None:
    assert says(output, answer) is found


async def test_a_service_that_is_gone_stops_the_job() -> None:
    gone = ToolRegistry.load(environ={"TOOLFORMER_TOOL_CALCULATOR_URL": "http://127.0.0.1:9"})
    async with ToolClient(gone) as client:
        with pytest.raises(StageError, match="toolformer up"):
            await check_services(client, ["Calculator"])
        document = Document(0, (text("It is", CallSlot("Calculator", "1"), " 1", "1"),))
        with pytest.raises(StageError, match="cannot be reached"):
            await execute([document], client, gone, ExecuteSettings(patience_s=0))


def _breaks(query: str) -> str:
    raise RuntimeError("a disk that cannot be read")


@pytest.mark.parametrize(("make", "count"), [(make_corpus, COUNT), (make_base_corpus, 20)])
def test_a_service_that_breaks_stops_the_job_and_drops_no_text(
    tmp_path: Path, make: Callable[..., object], count: int
) -> None:
    texts = (text for document in documents(COUNT, seed=0) for text in document.texts)
    with (
        tool_services(texts, search=_breaks) as registry,
        pytest.raises(StageError, match=r"WikiSearch\(.*\): internal: "),
    ):
        make(tmp_path, count=count, seed=0, registry=registry)


@pytest.mark.parametrize(("main", "option"), [(demonstrations.main, "--documents"), (base.main, "--texts")])
def test_the_command_line_names_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    main: Callable[[list[str]], None],
    option: str,
) -> None:
    for tool in TOOLS:
        monkeypatch.setenv(f"TOOLFORMER_TOOL_{tool.upper()}_URL", "http://127.0.0.1:9")
    for number, status, said in (("0", 2, option), ("40", 1, "Start the tool services first (toolformer up)")):
        with pytest.raises(SystemExit) as stopped:
            main(["--out", str(tmp_path), option, number])
        assert stopped.value.code == status
        assert said in capsys.readouterr().err
