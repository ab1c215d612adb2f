"""Mutated files: whatever is in a file of a store, it is read as it was written, or refused by an error.

python -m bench._mutations --count 100000
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steppe.check import ArgumentError
from steppe.store import Computed, Store, StoreError, address
from steppe.store._query import listed
from steppe.sweep import read_sweep

TOML = """base = "mine:problem"
measures = ["sharpness"]
stop = { steps = 300 }
where = "lr * seed < 3"
[axes]
lr = { log = [0.01, 1.0, 5] }
seed = { seeds = 4 }
"""


@dataclass(frozen=True)
class Row:
    """A run with a few numbers in every file."""

    seed: int = 0

    def compute(self, checkpoint: Any, progress: Any = None) -> Computed:
        x = np.linspace(0, 1, 20) + self.seed
        return Computed({"step": np.arange(20), "x": x}, {"w": x}, {"final": {"x": 1.5}, "outcome": "reached"})


def mutated(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Some bytes changed, lost, repeated or added; or a part of another file."""
    kind, text = rng.randrange(6), bytearray(data)
    if kind == 0:
        return bytes(text[: rng.randrange(len(text) + 1)])
    if kind == 1:
        return other if rng.random() < 0.5 else rng.randbytes(rng.randrange(200))
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(text) or 1)
        if kind == 2 and text:
            text[at % len(text)] ^= 1 << rng.randrange(8)
        elif kind == 3:
            text[at:at] = rng.randbytes(rng.randint(1, 4))
        elif kind == 4:
            del text[at : at + rng.randint(1, 8)]
        else:  # digits for digits, as a person would falsify a number
            digits = [i for i, c in enumerate(text) if chr(c).isdigit()] or [0]
            text[rng.choice(digits) : rng.choice(digits) + 1] = str(rng.randrange(10)).encode()
    return bytes(text)


def mutations(count: int, root: Path, *, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How often each kind of file was refused or read as written; and where an altered one was taken for good."""
    rng, told, wrong = random.Random(seed), Counter[str](), list[str]()
    store, spec = Store(root / "runs"), Row(3)
    entry = store.compute(spec, spec.compute)
    checkpoint = store._checkpoint(address(Row(4)))
    checkpoint.path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.save({"x": np.arange(5.0)})
    toml = root / "sweep.toml"
    toml.write_text(TOML)
    listed(store)
    (index,) = (root / "runs" / ".index").glob("*.parquet")

    def values() -> Any:
        found = store.open(entry.id)
        arrays = [*found.curves.values(), *found.params.values()]
        return json.dumps([found.result, dict(found.spec), [a.tolist() for a in arrays]])

    def saved() -> Any:
        arrays = store._checkpoint(address(Row(4))).load()
        return None if arrays is None else json.dumps({name: a.tolist() for name, a in arrays.items()})

    readers: dict[Path, Callable[[], Any]] = {entry.folder / name: values for name in sorted(entry.about["files"])}
    readers |= {entry.folder / "spec.json": values, checkpoint.path: saved}
    readers |= {index: lambda: json.dumps(listed(store)[1]), toml: lambda: len(read_sweep(toml).axes)}
    whole = {path: path.read_bytes() for path in readers}
    before = {path: read() for path, read in readers.items()}
    for _ in range(count):
        path = rng.choice(list(readers))
        data = mutated(whole[path], rng, whole[rng.choice(list(whole))])
        path.write_bytes(data)
        name = "index" if path == index else path.name
        try:
            now = readers[path]()
            same = now == before[path] or (path == checkpoint.path and now is None) or path == toml
            told[f"{name} {'read' if same else 'WRONG'}"] += 1
            if not same:
                wrong.append(f"{name}: {data[:200]!r}")
        except (StoreError, ArgumentError) as error:
            told[f"{name} refused"] += 1
            if path.name not in str(error):
                wrong.append(f"{name}: the error does not name the file: {error}")
        shutil.rmtree(root / "runs" / ".index", ignore_errors=True) if path == index else None
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(whole[path])
    return told, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steppe-mutations-") as root:
        told, wrong = mutations(asked.count, Path(root), seed=asked.seed)
    print(json.dumps({"outcomes": dict(sorted(told.items())), "wrong": wrong[:20]}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
