"""steppe bench: our speed against peers and the hardware, measured in one run."""

from dataclasses import dataclass

import tyro

from steppe.cli.common import Output, print_json, print_table


@dataclass(frozen=True)
class Bench(Output):
    """Measure our speed against peers, in one run on this machine. A ratio above 1 means that we are faster.

    Examples: steppe bench sam · steppe bench sharpness · steppe bench minima
    """

    name: tyro.conf.Positional[str] = "sam"
    """Which benchmark: sam, sharpness, minima, flow, flatten or rates."""

    def __call__(self) -> int:
        from steppe.bench import benchmark

        results = benchmark(self.name)()
        if self.json:
            print_json(results)
            return 0
        rows = [
            (r.subject, r.peer, f"{r.ours:.3g}", f"{r.theirs:.3g}", r.unit, f"{r.ratio:.2f}", r.note) for r in results
        ]
        print_table("", ("subject", "peer", "ours", "theirs", "unit", "theirs/ours", ""), rows)
        return 0
