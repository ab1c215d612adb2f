"""steppe data: the files of real data, listed, checked, imported and downloaded."""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from steppe.cli._shared import Output, print_json, print_table

if TYPE_CHECKING:
    from steppe.data._files import Status
    from steppe.data._importing import Imported
    from steppe.data._registry import DataSet


@dataclass(frozen=True)
class Data(Output):
    """Real data: list what there is, check it, import files that you have, download.

    Examples: steppe data · steppe data check mnist · steppe data import ~/Downloads · steppe data download cifar10
    """

    action: tyro.conf.Positional[Literal["list", "check", "import", "download"]] = "list"
    """list: what there is. check: take every sha256. import FOLDER: idx, gzip, xz, CIFAR-10 binary or pickle, housing
    CSV, archives. download NAME: from the publisher, going on where an earlier attempt ended."""
    what: tyro.conf.Positional[tuple[str, ...]] = ()
    """Data sets (list, check: all unless told), or a folder to import from."""
    data: Path | None = None
    """The data folder. Default: the variable STEPPE_DATA, else a folder in the user's cache."""

    def __call__(self) -> int:
        actions = {"list": self._list, "check": self._check, "import": self._import, "download": self._download}
        return actions[self.action]()

    def _list(self) -> int:
        from steppe.data._files import status

        statuses = [s for data_set in self._sets() for s in status(data_set, self.data)]
        if self.json:
            print_json([*statuses, *([] if self.what else _bundled())])
            return 0
        rows = [_row(data_set, [s for s in statuses if s.data_set == data_set.name]) for data_set in self._sets()]
        rows += [] if self.what else [(b["data_set"], b["title"], b["state"], "", "") for b in _bundled()]
        print_table("", ("data", "what", "state", "size", "where"), rows)
        return 0

    def _check(self) -> int:
        from steppe.data._files import status

        statuses = [s for data_set in self._sets() for s in status(data_set, self.data, read=True)]
        if self.json:
            print_json(statuses)
        else:
            rows = [(s.data_set, s.file, s.state, s.trouble or str(s.path or "")) for s in statuses]
            print_table("", ("data", "file", "state", ""), rows)
        # Nothing there at all is no damage, unless it was asked for by name.
        bad = ("damaged", "missing") if self.what else ("damaged",)
        return 1 if any(s.state in bad for s in statuses) else 0

    def _import(self) -> int:
        from steppe.check import refuse
        from steppe.data._importing import import_folder

        if len(self.what) != 1:
            refuse("FOLDER", "one folder", self.what, "For example: steppe data import ~/Downloads")
        return self._done(import_folder(Path(self.what[0]).expanduser(), self.data))

    def _download(self) -> int:
        from steppe.check import refuse
        from steppe.data._importing import download
        from steppe.data._registry import SETS

        if not self.what:
            refuse("NAME", "a data set: " + ", ".join(SETS), "nothing", "For example: steppe data download mnist")
        done = []
        for data_set in self._sets():
            done += download(data_set, self.data, progress=None if self.json else Progress())
        return self._done(done)

    def _sets(self) -> "list[DataSet]":
        from steppe.data._registry import SETS, named

        return [named(name) for name in self.what] if self.what else list(SETS.values())

    def _done(self, done: "list[Imported]") -> int:
        if self.json:
            print_json(done)
        else:
            print("\n".join(f"wrote {i.path} from {i.source}" for i in done) or "everything is there already")
        return 0


class Progress:
    """Lines on stderr, one for each tenth of a file."""

    def __init__(self) -> None:
        self.shown: tuple[str, int] = ("", -1)

    def __call__(self, name: str, have: int, total: int) -> None:
        now = (name, 10 * have // total)
        if now != self.shown:
            self.shown = now
            print(f"{name}: {have / 1e6:.1f} of {total / 1e6:.1f} MB", file=sys.stderr)


def _bundled() -> list[dict[str, str]]:
    """What needs no file of ours."""
    bundled = {
        "digits": ("1,797 handwritten digits, 8 × 8", "with scikit-learn"),
        "breast_cancer": ("569 tumours, 30 features, benign or malignant", "with scikit-learn"),
        "reversal": ("sequences of symbols and their reversal", "generated"),
    }
    return [{"data_set": name, "title": title, "state": state} for name, (title, state) in bundled.items()]


def _row(data_set: "DataSet", statuses: "list[Status]") -> tuple[str, ...]:
    counts = Counter(s.state for s in statuses)
    state = ", ".join(f"{counts[k]} {k}" for k in ("checked", "unchecked", "damaged", "missing") if counts[k])
    size = sum(s.bytes for s in statuses)
    where = sorted({str(s.path.parent) for s in statuses if s.path is not None})
    remedy = f"steppe data download {data_set.name}"
    return data_set.name, data_set.title, state, f"{size / 1e6:.1f} MB" if size else "", ", ".join(where) or remedy
