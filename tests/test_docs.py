"""The pages: every example runs, every link and picture leads somewhere, every name and file a page mentions exists."""

import doctest
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# `make docs` writes the folders api and gallery.
MADE = ("api", "gallery")
PAGES = sorted([*ROOT.glob("*.md"), *(p for p in ROOT.glob("docs/**/*.md") if p.parent.name not in MADE)])
# What a user reads to learn a tool or a paper; indexes, logs and tables of results need no example.
GUIDES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/papers/*.md")])
# The change log names what is gone.
PRESENT = [page for page in PAGES if page.name != "CHANGELOG.md"]

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(r"\bsteppe(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"\b(?:steppe|examples|tests|docs)/[\w./-]+\.(?:py|md|png|json)\b")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


# PyTorch is an extra; without it the folder tests/torch looks like an empty package of that name.
HAS_TORCH = getattr(importlib.util.find_spec("torch"), "origin", None) is not None


def each(pages):
    return pytest.mark.parametrize("page", pages, ids=lambda page: str(page.relative_to(ROOT)))


def unfenced(text):
    """The same lines with the marks of code blocks blank, so that no example expects one as its output."""
    return re.sub(r"^```.*$", "", text, flags=re.MULTILINE)


def names_in(text):
    code = "\n".join([*FENCED.findall(text), *INLINE.findall(FENCED.sub("", text))])
    return sorted(set(NAME.findall(code)))


def exists(name):
    parts = name.split(".")
    if parts[1] == "torch" and not HAS_TORCH:
        return True
    for known in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:known]))
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
            continue
        for part in parts[known:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def anchors(page):
    """The anchors that GitHub gives to the headings of a page."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page, text):
    bare = INLINE.sub("", FENCED.sub("", text))
    broken = []
    for target in LINK.findall(bare):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


@each([page for page in PAGES if ">>>" in page.read_text()])
def test_examples(page, tmp_path, monkeypatch):
    if "steppe.torch" in page.read_text() and not HAS_TORCH:
        pytest.skip("PyTorch is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPPE_STORE", str(tmp_path / "runs"))
    name = str(page.relative_to(ROOT))
    example = doctest.DocTestParser().get_doctest(unfenced(page.read_text()), {}, name, str(page), 0)
    heard = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = doctest.DocTestRunner(optionflags=flags).run(example, out=heard.append)
    assert results.failed == 0, "".join(heard)


@each([page for page in GUIDES if page.name != "README.md"])
def test_a_guide_has_an_example(page):
    assert ">>>" in page.read_text()


@each(PAGES)
def test_links_and_pictures(page):
    assert broken_links(page, page.read_text()) == []


@each(PRESENT)
def test_names(page):
    assert [name for name in names_in(page.read_text()) if not exists(name)] == []


@each(PRESENT)
def test_files(page):
    assert [file for file in FILE.findall(page.read_text()) if not (ROOT / file).exists()] == []


def test_every_guide_is_in_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert [page for page in pages if page != "README.md" and f"]({page})" not in index] == []


def test_the_checks_find_what_is_wrong(tmp_path):
    """A page with one mistake of each kind."""
    page = tmp_path / "page.md"
    page.write_text("# One heading\n\n[gone](gone.md) [here](#one-heading) [no](#two) `steppe.nothing` `steppe.run`\n")
    assert broken_links(page, page.read_text()) == ["gone.md", "#two"]
    assert [name for name in names_in(page.read_text()) if not exists(name)] == ["steppe.nothing"]
