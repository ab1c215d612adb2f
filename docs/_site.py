"""What Sphinx does not do by itself: pages of the API from `dir()`, docstrings as they are, pictures of the gallery."""

import importlib
import inspect
import re
import shutil
from pathlib import Path

import steppe.papers

DOCS = Path(__file__).parent
API = DOCS / "api"
# Modules in the order in which a reader meets them. `steppe.torch` needs PyTorch.
MODULES = (
    "steppe", "steppe.torch", "steppe.losses", "steppe.measures", "steppe.flattening", "steppe.rates",
    "steppe.dynamics", "steppe.until", "steppe.when", "steppe.networks", "steppe.activations",
    "steppe.data", "steppe.curvature", "steppe.linalg", "steppe.auditing", "steppe.experiments",
    "steppe.sweep", "steppe.store",
)  # fmt: skip


def public(module):
    """The names that a user of this module calls: those of `dir`, without modules and constants."""
    found = importlib.import_module(module)
    members = {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}
    return [name for name, value in members.items() if inspect.isroutine(value) or inspect.isclass(value)]


def write_api(app):
    """One page for each module; a page is written only if it changes, so that a second build is quick."""
    API.mkdir(exist_ok=True)
    described = {}
    pages = {f"{module}.md": _page(module, described) for module in MODULES} | {"index.md": _index()}
    for old in {path.name for path in API.iterdir()} - set(pages):
        (API / old).unlink()
    for name, text in pages.items():
        if not (API / name).exists() or (API / name).read_text() != text:
            (API / name).write_text(text)


def _index():
    rows = "\n".join(f"- [{module}]({module}.md): {_summary(importlib.import_module(module))}" for module in MODULES)
    tree = "\n".join(MODULES)
    return f"# API\n\nEvery public name.\n\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def _page(module, described):
    """The docstrings of its names. One that an earlier page has is shown again, and indexed there only."""
    found = importlib.import_module(module)
    directives = []
    for name in public(module):
        value = getattr(found, name)
        again = described.setdefault(id(value), module) != module
        options = ["   :members:"] * inspect.isclass(value) + ["   :no-index:"] * again
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        directives.append("\n".join([f".. {kind}:: {module}.{name}", *options, ""]))
    body = "\n".join(directives)
    return f"# {module}\n\n{_summary(found)}\n\n```{{eval-rst}}\n{body}\n```\n"


def _summary(module):
    return re.sub(r"[*_|]", r"\\\g<0>", (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " "))


def check_api(app, env):
    """Every public name is described on a page."""
    objects = env.domaindata["py"]["objects"]
    pages = {name: public(name) for name in MODULES}
    there = {
        id(getattr(importlib.import_module(m), n)) for m, names in pages.items() for n in names if f"{m}.{n}" in objects
    }
    missing = [
        f"{m}.{n}"
        for m, names in pages.items()
        for n in names
        if id(getattr(importlib.import_module(m), n)) not in there
    ]
    if missing:
        raise RuntimeError(f"not in the API pages: {', '.join(missing)}")


def plain_words(app, what, name, obj, options, lines):
    """Docstrings are plain text with `code`, examples and indented blocks; Sphinx expects reStructuredText."""
    paragraphs = "\n".join(lines).split("\n\n")
    words = "\n\n".join(_paragraph(p) for p in paragraphs if p.strip())
    lines[:] = [*words.split("\n"), ""]


def _paragraph(text):
    lines = text.split("\n")
    example = next((k for k, line in enumerate(lines) if line.lstrip().startswith(">>>")), None)
    if example is not None:
        before = [_paragraph("\n".join(lines[:example])), ""] if example else []
        return "\n".join([*before, *lines[example:]])
    if all(line.startswith(" ") or not line.strip() for line in lines):  # formulas and tables, line by line
        return "\n".join(f"| {_escaped(line.strip())}" for line in lines)
    return _escaped(" ".join(line.strip() for line in lines))


def _escaped(text):
    """Text with `code` as a literal and nothing else that reStructuredText would read as markup."""
    parts = re.split(r"(`[^`]+`)", text)
    for k, part in enumerate(parts):
        if part.startswith("`"):  # a literal ends before a space, a mark or an empty escape
            parts[k] = f"`{part}`" + ("\\ " if re.match(r"\w", parts[k + 1]) else "")
        else:
            parts[k] = re.sub(r"([*|_\\`])", r"\\\1", part)
    text = "".join(parts)
    return re.sub(r"^([-+•]|\w+[.)])(\s)", r"\\\1\2", text)


def adapted(app, docname, source):
    """A page as the site needs it: explorable pages have copies there, a folder is its claims, a table has a title."""
    link = r"\[([^\]]+)\]\(\.\./steppe/report/static/explore/([\w.]+)\)"
    text = re.sub(link, r'<a href="explore/\2">\1</a>', source[0])
    text = re.sub(r"\]\((results/[\w-]+)\)", r"](\1/claims.md)", text)
    if docname.startswith("results/") and not text.startswith("#"):
        text = f"# Claims of {docname.split('/')[1]}\n\n{text}"
    source[0] = text + _contents() if docname == "README" else text


def _contents():
    """The tables of contents beside every page, from the files."""
    pages = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in {"README", "start"})
    papers = [page for page in pages if page in {*steppe.papers.names(), "diagonal"}]
    deeper = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("re[sp]*/**/*.md"))
    named = [f"{page.replace('results/', 'Claims: ').replace('reports/', 'Report: ')} <{page}>" for page in deeper]
    trees = {
        "Tools": ["start", *(page for page in pages if page not in papers)],
        "Papers": papers,
        "More": ["gallery/index", "api/index", *named],
    }
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(entries) + "\n```\n"
        for caption, entries in trees.items()
    )


def copy_explorables(app, error):
    if error is None and app.builder.format == "html":
        target = Path(app.outdir) / "explore"
        shutil.copytree(DOCS.parent / "steppe/report/static/explore", target, dirs_exist_ok=True)


def _get_sg_image_scraper():
    return pictures


def pictures(block, block_vars, gallery_conf, **options):
    """The pictures that an example has written, in the order of their names."""
    from sphinx_gallery.scrapers import figure_rst

    found = []
    for png in sorted(_build(gallery_conf).glob("*.png")):
        target = next(block_vars["image_path_iterator"])
        shutil.move(png, target)
        found.append(target)
    return figure_rst(found, gallery_conf["src_dir"])


def clean(gallery_conf, fname):
    """No pictures or settings of another example are left."""
    import jax
    import matplotlib.pyplot as plt

    plt.close("all")
    jax.config.update("jax_enable_x64", False)
    shutil.rmtree(_build(gallery_conf), ignore_errors=True)


def _build(gallery_conf):
    """Examples write to build/ where they run, and the gallery runs them in their folder."""
    return DOCS.parent / "examples" / "build"
