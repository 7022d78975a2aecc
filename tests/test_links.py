"""No link is dead, modules that pages name and pages that code names exist, decisions are numbered without gaps."""

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_NAMED = re.compile(r"\bdocs/[\w./-]+\.md\b|\b(?:[\w-]+/)+README\.md\b")


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that git tracks, or would; none outside a checkout."""
    command = ["git", "ls-files", "-co", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def prose(page: Path) -> str:
    """A page without its blocks and spans of code."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"``.+?``|`[^`\n]*`", "code", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


def dead(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page that lead nowhere below ``root``; addresses of other sites are not looked up."""
    missing = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        lost = not target.is_relative_to(root) or not target.exists()
        if lost or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            missing.append(link)
    return missing


@pytest.mark.parametrize("page", tracked("*.md"), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    assert not dead(page)


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `title`\n\n[a](#a-title) [b](#b) [c](c.md) `[d](d.md)` [e](https://example.org)\n")
    assert dead(page, tmp_path) == ["#b", "c.md"]


def test_modules_that_pages_name_exist() -> None:
    """Named in full or by their end; scripts of an earlier commit are marked with it, or with a dagger."""
    known = "".join(f"/{path.relative_to(ROOT)}\n" for path in tracked("*.py"))
    for page in tracked("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if "†" not in line and not re.search(r"commit [0-9a-f]{7}", line):
                for name in re.findall(r"`([\w/]+\.py)`", line):
                    assert f"/{name}\n" in known or not known, f"{page.relative_to(ROOT)}: {name}"


def test_pages_that_code_names_exist() -> None:
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in tracked("*.py", "*.toml", "*.yml", "*.yaml", "*.env", "Makefile")
        for name in _NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert named or not tracked()
    assert not sorted((file, name) for file, name in named if not (ROOT / name).is_file())


def test_decisions_are_numbered_without_gaps_and_dated() -> None:
    records = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [path.name[:3] for path in records] == [f"{number:03}" for number in range(1, len(records) + 1)]
    for path in records:
        title, _, date = path.read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith(f"# {path.name[:3]}: ")
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", date), path.name
