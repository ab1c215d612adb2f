"""steppe bench: our speed against peers and the limit of the hardware, measured in one run."""

import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

import tyro

import steppe
from steppe.cli._shared import Output, print_json, print_table


@dataclass(frozen=True)
class Bench(Output):
    """Measure our speed against peers, in one run on this machine. A ratio above 1 means that we are faster.

    Examples: steppe bench sam · steppe bench sharpness · steppe bench audit
    """

    name: tyro.conf.Positional[str] = "sam"
    """Which benchmark: audit, sam, sharpness, minima, flow, flatten, rates, monitor or sweep."""

    def __call__(self) -> int:
        results = _package().benchmark(self.name)()
        if self.json:
            print_json(results)
            return 0
        rows = [
            (r.subject, r.peer, f"{r.ours:.3g}", f"{r.theirs:.3g}", r.unit, f"{r.ratio:.2f}", r.note) for r in results
        ]
        print_table("", ("subject", "peer", "ours", "theirs", "unit", "theirs/ours", ""), rows)
        return 0


def _package() -> Any:
    """The benchmarks, a package beside steppe: `steppe_bench` from a wheel, `bench` in a checkout."""
    beside = str(Path(steppe.__file__).parent.parent)
    for name in ("steppe_bench", "bench"):
        # Found by its place: another package called bench may come first on the path.
        spec = PathFinder.find_spec(name, [beside])
        if spec is not None and spec.loader is not None:
            if name not in sys.modules:
                sys.modules[name] = module_from_spec(spec)
                spec.loader.exec_module(sys.modules[name])
            return sys.modules[name]
    from steppe.check import ArgumentError

    raise ArgumentError(f"steppe bench needs the package of benchmarks in {beside}; it is missing. Reinstall steppe.")
