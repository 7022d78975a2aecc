"""The compiled step equals the model on torch; what it promises beyond that; what happens where it is not available."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.native import library, prebuilt
from language_model.native.choice import most_likely, most_likely_and_rank, rank
from language_model.native.compiling import digest
from language_model.native.step import NativeStep
from tests.support.models import SMALL, compiled_model, random_model

SHAPES = [
    pytest.param(SMALL, id="small"),
    pytest.param(GPTJConfig(130, 128, 64, 1, 1, rotary_dim=2, n_inner=40), id="one head, odd inner"),
    pytest.param(GPTJConfig(97, 64, 48, 3, 3, rotary_dim=16, bos_token_id=1, eos_token_id=1), id="rotary=head"),
    pytest.param(GPTJConfig(2048, 512, 256, 4, 4, rotary_dim=32), id="bundled"),
]


def texts(config: GPTJConfig, *lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(config.vocab_size, (length,), generator=generator).tolist() for length in lengths]


def compiled(config: GPTJConfig = SMALL, spread: float = 0.3) -> GPTJ:
    try:
        return compiled_model(config, spread=spread)
    except library.Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("config", SHAPES)
def test_logits_and_cache_equal_the_model_on_torch(config: GPTJConfig) -> None:
    fast, plain = compiled(config, spread=0.08), random_model(config, spread=0.08)
    ours, theirs = fast.new_cache(12), plain.new_cache(12)
    # More tokens than are computed at once, rows in any order, more rows than a block has.
    rows = [11, 0, 5, 3, 1, 2, 4, 6, 7, 8, 9]
    ids = texts(config, 41, 17, 30, 1, 2, 3, 4, 5, 6, 7, 8)
    # one at a time on torch, which pads a ragged batch past a short row's end
    want = torch.cat([plain.extend(theirs, [row], [new]) for row, new in zip(rows, ids, strict=True)])
    torch.testing.assert_close(fast.extend(ours, rows, ids), want, atol=1e-4, rtol=0)
    assert ours.lengths == theirs.lengths
    torch.testing.assert_close(ours.tokens, theirs.tokens, atol=1e-4, rtol=0)


def test_the_bits_depend_on_nothing_else() -> None:
    """A token's logits are the same whatever runs beside it and however its text is cut into calls."""
    model, (text, *others) = compiled(), texts(SMALL, 100, 100, 100, 90, 80, 3, 2, 1, 70, 60)
    cache = model.new_cache(10, 128)
    alone = model.extend(cache, [0], [text])[0]
    together = model.extend(model.new_cache(10, 128), range(10), [text, *others])[0]
    assert torch.equal(alone, together)
    in_pieces = model.new_cache(10, 128)
    model.extend(in_pieces, [4, 2], [text[:50], others[0]])
    model.extend(in_pieces, [3, 4], [others[1], text[50:53]])
    for token in text[53:-1]:
        model.extend(in_pieces, [4], [[token]])
    assert torch.equal(alone, model.extend(in_pieces, [2, 4], [[1], text[-1:]])[1])


def test_helpers_change_no_bit() -> None:
    """Not even while two steps want the same helpers at once: then one is done without."""
    model, ids = compiled(), texts(SMALL, *range(20, 32))

    def run(_: int) -> torch.Tensor:
        cache = model.new_cache(12, 64)
        model.extend(cache, range(12), ids)
        return torch.stack([model.extend(cache, range(12), [new[:1] for new in ids]) for _ in range(20)])

    want = run(0)
    assert library.load().hire(2) >= 2
    with ThreadPoolExecutor(2) as pool:
        for got in pool.map(run, range(6)):
            assert torch.equal(got, want)
    for pause in (0.0, 0.005, 0.005):  # long enough that helpers sleep
        time.sleep(pause)
        model.expect_step()
        assert torch.equal(run(0), want)


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    model = compiled()
    for wrong in (-1, SMALL.vocab_size):
        with pytest.raises(ValueError, match="token ids must be between 0 and 423"):
            model.extend(model.new_cache(1), [0], [[1, wrong]])


def test_a_cache_of_another_model_is_refused() -> None:
    other = random_model(GPTJConfig(424, 256, 64, 2, 2, rotary_dim=8)).new_cache(1)
    with pytest.raises(ValueError, match="not made for this model"):
        compiled().extend(other, [0], [[1]])


class TestUnavailable:
    """Without it the model stays on torch, and the reason is reported."""

    @pytest.fixture
    def fresh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Nothing compiled yet."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.delenv(prebuilt.VARIABLE, raising=False)
        library.load.cache_clear()
        yield
        library.load.cache_clear()

    @pytest.mark.usefixtures("fresh")
    def test_no_compiler(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        model = GPTJ.from_config(SMALL)
        with pytest.raises(library.Unavailable, match="no C compiler"):
            model.stepper = NativeStep.of(model)
        assert model.extend(model.new_cache(1), [0], [[1, 2]]).shape == (1, SMALL.vocab_size)

    @pytest.mark.usefixtures("fresh")
    @pytest.mark.parametrize(("compiler", "says"), [("false", "failed"), ("no-such-compiler", "does not work")])
    def test_a_compiler_that_fails(self, monkeypatch: pytest.MonkeyPatch, compiler: str, says: str) -> None:
        monkeypatch.setenv("CC", compiler)
        with pytest.raises(library.Unavailable, match=f"{compiler} {says}"):
            library.load()

    @pytest.mark.usefixtures("fresh")
    def test_nowhere_to_keep_it(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("CC", "true")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.raises(library.Unavailable, match=r"cannot be kept: .*; set XDG_CACHE_HOME"):
            library.load()

    @pytest.mark.usefixtures("fresh")
    def test_what_was_compiled_is_kept(self, tmp_path: Path) -> None:
        try:
            library.load()
        except library.Unavailable as why:
            pytest.skip(str(why))
        (kept,) = (tmp_path / "toolformer").iterdir()
        made_at = kept.stat().st_mtime_ns
        library.load.cache_clear()
        library.load()
        assert kept.stat().st_mtime_ns == made_at
        assert (tmp_path / "toolformer").stat().st_mode & 0o077 == 0

    @pytest.mark.usefixtures("fresh")
    @pytest.mark.parametrize("which", ["folder", "file", "made beforehand"])
    def test_what_others_may_write_is_not_run(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, which: str
    ) -> None:
        monkeypatch.setenv("CC", "true")  # if it is asked to compile, it makes nothing
        folder = tmp_path / "toolformer"
        folder.mkdir()
        if which == "made beforehand":
            monkeypatch.setenv(prebuilt.VARIABLE, str(folder))
            monkeypatch.setattr(prebuilt, "processor_flags", set)
            planted = folder / prebuilt._name("any")
        else:
            planted = folder / f"step-{digest(b'true', library._processor())}.so"
        planted.touch()
        (planted if which == "file" else folder).chmod(0o777)
        with pytest.raises(library.Unavailable, match=r"may be written by others \(.rwxrwxrwx\)"):
            library.load()

    @pytest.mark.usefixtures("fresh")
    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
    def test_a_folder_of_somebody_else_is_not_used(self, tmp_path: Path) -> None:
        (tmp_path / "toolformer").mkdir()
        os.chown(tmp_path / "toolformer", 65534, 65534)
        with pytest.raises(library.Unavailable, match="belongs to another user"):
            library.load()

    @pytest.mark.slow
    @pytest.mark.usefixtures("fresh")
    def test_made_beforehand_it_needs_no_compiler(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        try:
            made = prebuilt.build(tmp_path / "made")
        except library.Unavailable as why:
            pytest.skip(str(why))
        monkeypatch.setenv("CC", "no-such-compiler")
        monkeypatch.setenv(prebuilt.VARIABLE, str(tmp_path / "made"))
        found = prebuilt.find()
        assert found in made
        assert library.load()._name == str(found)
        made[-1].rename(tmp_path / "made" / "step-any-0000000000000000.so")
        monkeypatch.setattr(prebuilt, "processor_flags", set)
        assert prebuilt.find() is None, "of other sources"

    def test_a_processor_gets_what_it_can_run(self) -> None:
        v3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "sse2"}
        v4 = v3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
        vnni = v4 | {"avx512_vnni"}
        assert prebuilt.fitting("x86_64", vnni) == ["x86-64-v4-vnni", "x86-64-v4", "x86-64-v3", "any"]
        assert prebuilt.fitting("x86_64", vnni - {"avx512dq"}) == ["x86-64-v3", "any"]
        assert prebuilt.fitting("x86_64", v4) == ["x86-64-v4", "x86-64-v3", "any"]
        assert prebuilt.fitting("x86_64", v4 - {"avx512dq"}) == ["x86-64-v3", "any"]
        assert prebuilt.fitting("x86_64", v4 - {"fma"}) == ["any"]
        assert prebuilt.fitting("aarch64", {"asimd"}) == ["any"]

    def test_another_precision(self, tmp_path: Path) -> None:
        checkpoint.save(random_model(), tmp_path)
        half = checkpoint.load(tmp_path, dtype=torch.bfloat16)
        with pytest.raises(library.Unavailable, match=r"float32 on a CPU, not torch\.bfloat16"):
            NativeStep.of(half)

    def test_heads_that_fill_no_vector(self) -> None:
        model = GPTJ.from_config(GPTJConfig(97, 64, 48, 3, 4, rotary_dim=12))
        with pytest.raises(library.Unavailable, match="width of a head, 12"):
            model.stepper = NativeStep.of(model)


class TestChoice:
    """Compiled code finds in logits what torch finds."""

    def logits(self, rows: int, vocabulary: int) -> torch.Tensor:
        compiled()  # loads the code
        # few different values, so that there are equals
        return torch.randint(-50, 50, (rows, vocabulary), generator=torch.Generator().manual_seed(1)) / 8

    @pytest.mark.parametrize(("rows", "vocabulary"), [(1, 2048), (5, 424), (3, 7), (2, 16), (2, 33)])
    def test_the_first_of_the_most_likely(self, rows: int, vocabulary: int) -> None:
        logits = self.logits(rows, vocabulary)
        want = [row.tolist().index(max(row.tolist())) for row in logits]
        assert most_likely(logits) == want
        wider = torch.full((rows, vocabulary + 9), 100.0)
        wider[:, :vocabulary] = logits
        assert most_likely(wider[:, :vocabulary]) == want
        assert most_likely(torch.full((1, vocabulary), float("-inf"))) == [0]

    @pytest.mark.parametrize(("rows", "vocabulary"), [(1, 2048), (5, 424), (3, 7), (2, 33)])
    def test_rank(self, rows: int, vocabulary: int) -> None:
        logits = self.logits(rows, vocabulary)
        logits[:, 3], logits[:, 5] = 2.0625, 3.0625  # equal to none other
        as_torch_finds = rank(logits.double(), [3, 5])
        assert rank(logits, [3, 5]) == as_torch_finds
        assert [start for start, _ in as_torch_finds] == [5] * rows
        assert most_likely_and_rank(logits, [3, 5]) == (most_likely(logits), as_torch_finds)
        assert most_likely_and_rank(logits.double(), [3, 5]) == (most_likely(logits), as_torch_finds)
        assert rank(logits, [3]) == [(3, int((row > 2.0625).sum())) for row in logits]
