"""A store of many runs: how long it takes to list, filter and aggregate them.

python -m bench._scale --runs 100000
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from steppe.store import Store, address, canonical
from steppe.store._files import write_about
from steppe.store._query import listed, query

from ._mutations import Row

_MOST_LINKS = 50_000  # a file of ext4 has at most 65,000
GROUPS = "SELECT (spec->>'$.seed')::INT % 10 AS g, count(*), avg(seconds) FROM runs GROUP BY g"


def filled(root: Path, runs: int) -> Store:
    """A store of whole runs, whose data files are links to those of a few of them."""
    store, first = Store(root), Row(0)
    entry = store.compute(first, first.compute)
    about = {name: value for name, value in entry.about.items() if name not in ("files", "spec")}
    for seed in range(1, runs):
        spec = replace(first, seed=seed)
        if seed % _MOST_LINKS == 0:
            entry = store.compute(spec, spec.compute)
            continue
        folder = root / address(spec)
        folder.mkdir()
        for name in entry.about["files"]:
            os.link(entry.folder / name, folder / name)
        write_about(folder, {**about, "spec": canonical(spec)})
    return store


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Of the wall clock and of this process."""
    wall, own = time.perf_counter(), time.process_time()
    call()
    return round(time.perf_counter() - wall, 3), round(time.process_time() - own, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    asked = parser.parse_args()
    told: dict[str, Any] = {"runs": asked.runs}
    with tempfile.TemporaryDirectory(prefix="steppe-scale-") as root:
        store = filled(Path(root), asked.runs)
        told["first index"] = seconds(lambda: listed(store, limit=100))
        for _ in range(2):  # the second time, with folders that the system has in memory
            told["list the newest 100"] = seconds(lambda: listed(store, limit=100))
            told["filter"] = seconds(lambda: listed(store, where="seed % 1000 = 7", limit=100))
            told["aggregate"] = seconds(lambda: query(store, GROUPS))
        one = Row(asked.runs + 1)
        store.compute(one, one.compute)
        told["list after one new run"] = seconds(lambda: listed(store, limit=100))
    print(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
