"""steppe runs, what changes or checks a store: compare, tag, verify, merge, clean up, run again."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from steppe.cli._shared import Flag, Stored, counted, print_json, print_table

if TYPE_CHECKING:
    from steppe.store import Store


@dataclass(frozen=True)
class DiffRuns(Stored):
    """What differs between the specs of runs, and between their versions and results."""

    ids: tyro.conf.Positional[tuple[str, ...]] = ()
    """Two or more names of runs, or the beginnings of names."""

    def __call__(self) -> int:
        from steppe.check import ArgumentError
        from steppe.store import flat

        store = self.opened()
        entries = [store.open(whole_name(store, id)) for id in self.ids]
        if len(entries) < 2:
            raise ArgumentError("name two runs or more to compare. `steppe runs list` shows them.")
        about = ("spec", "versions", "platform", "commit")
        fields = [flat({"result": e.result, **{name: e.about.get(name) for name in about}}) for e in entries]
        names = dict.fromkeys(name for one in fields for name in one)
        rows = [(name, [one.get(name) for one in fields]) for name in names]
        differing = {name: values for name, values in rows if any(value != values[0] for value in values)}
        if self.json:
            print_json({"runs": [e.id for e in entries], "differ": differing})
        else:
            table = [[name, *map(_short, values)] for name, values in differing.items()]
            print_table("", ("field", *(e.id for e in entries)), table)
        return 0


@dataclass(frozen=True)
class TagRuns(Stored):
    """Give runs a tag, or take it from them; without runs, show all tags. `steppe runs list --tag TAG` finds them."""

    tag: tyro.conf.Positional[str | None] = None
    """The tag."""
    ids: tyro.conf.Positional[tuple[str, ...]] = ()
    """Names of runs, or the beginnings of names."""
    remove: Flag = False
    """Take the tag from these runs."""

    def __call__(self) -> int:
        store = self.opened()
        if self.tag is not None and self.ids:
            store.tag(self.tag, [whole_name(store, id) for id in self.ids], remove=self.remove)
        tags = store.tags()
        if self.json:
            print_json(tags)
        else:
            print_table("", ("tag", "runs"), [(tag, f"{len(ids)}: {' '.join(ids[:5])}") for tag, ids in tags.items()])
        return 0


@dataclass(frozen=True)
class VerifyRuns(Stored):
    """Check the checksums of all files of all runs. Exit code 1 if one is damaged."""

    def __call__(self) -> int:
        from steppe.store import StoreError

        store = self.opened()
        damaged = {}
        ids = store.ids()
        for id in counted(ids, len(ids), "runs", silent=self.json):
            try:
                store.open(id)
            except StoreError as error:
                damaged[id] = str(error)
        if self.json:
            print_json({"runs": len(ids), "damaged": damaged})
        else:
            print("\n".join([*damaged.values(), f"{len(ids):,} runs, {len(damaged):,} damaged"]))
        return 1 if damaged else 0


@dataclass(frozen=True)
class MergeRuns(Stored):
    """Copy the runs of another store that this one lacks. Their checksums are checked; nothing is replaced."""

    source: tyro.conf.Positional[Path] = field(kw_only=True)
    """The folder of the other store."""

    def __call__(self) -> int:
        from steppe.store import Store, merge

        told = dict(merge(self.opened(), Store(self.source)))
        counts = {kind: sum(what.startswith(kind) for what in told.values()) for kind in ("copied", "there", "damaged")}
        if self.json:
            print_json(told)
        else:
            print("\n".join([what for what in told.values() if what.startswith("damaged")]
                            + [", ".join(f"{count:,} {kind}" for kind, count in counts.items())]))  # fmt: skip
        return 1 if counts["damaged"] else 0


@dataclass(frozen=True)
class CollectRuns(Stored):
    """Remove what no run needs: what killed processes left, and checkpoints of finished runs. Runs are kept."""

    dry_run: Flag = False
    """Only show it."""

    def __call__(self) -> int:
        from steppe.store import collect, garbage

        store = self.opened()
        found = [one for one in garbage(store) if self.dry_run or collect(store, one)]
        size = sum(one.size for one in found)
        if self.json:
            print_json([{"path": str(one.path), "bytes": one.size, "why": one.why} for one in found])
        else:
            would = "would free" if self.dry_run else "freed"
            lines = [f"{one.path}: {one.why}" for one in found]
            print("\n".join([*lines, f"{would} {size / 1e6:.1f} MB in {len(found):,} files and folders"]))
        return 0


@dataclass(frozen=True)
class ReplayRun(Stored):
    """Run a stored run again, beside the store, and compare every file. Exit code 1 if one differs.

    Example: steppe runs replay 3f2a · steppe runs replay 3f2a mine:problem (a run of your own function)
    """

    id: tyro.conf.Positional[str] = field(kw_only=True)
    """The run's name, or the beginning of it."""
    function: tyro.conf.Positional[str | None] = None
    """MODULE:FUNCTION of yours, if the run is of one. A stored run cannot call your code unless you name it."""

    def __call__(self) -> int:
        import tempfile

        from steppe.check import ArgumentError
        from steppe.experiments import spec_of
        from steppe.papers import papers
        from steppe.store import DATA_FILES, Store
        from steppe.sweep import execute

        store = self.opened()
        entry = store.open(whole_name(store, self.id))
        target = entry.spec.get("target")
        if entry.spec["kind"] == "own" and self.function != target:
            remedy = f"If you trust it: steppe runs replay {self.id} {target}"
            raise ArgumentError(f"the run {entry.id} calls {target}, and you have not named it. {remedy}")
        papers()  # each brings its kinds of experiments
        spec = spec_of(entry.spec)
        with tempfile.TemporaryDirectory(prefix="steppe-replay-") as folder:
            (again,) = execute([spec], Store(folder), workers=1)
            same = {
                name: (entry.folder / name).read_bytes() == (again.folder / name).read_bytes() for name in DATA_FILES
            }
            here, there = again.about, entry.about
        names = ("versions", "platform", "commit")
        changed = [name for name in names if here.get(name) != there.get(name)]
        if self.json:
            print_json({"run": entry.id, "same": same, "changed": changed})
        else:
            print_table(
                "", ("file", "compared"), [(name, "same bytes" if s else "differs") for name, s in same.items()]
            )
            if changed:
                print(f"since then changed: {', '.join(changed)}")
        return 0 if all(same.values()) else 1


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def whole_name(store: "Store", beginning: str) -> str:
    """The one run whose name begins so."""
    from steppe.check import suggest
    from steppe.store import StoreError

    matches = [id for id in store.ids() if beginning and id.startswith(beginning)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise StoreError(f"{beginning!r} begins the names of {len(matches)} runs. Give more of the name.")
    hint = suggest(beginning, store.ids()) if store.ids() else "The store is empty."
    raise StoreError(f"no run {beginning!r} in {store.root}. {hint}")
