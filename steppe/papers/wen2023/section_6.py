"""Section 6 of wen2023, limitations: deep networks without bias. The paper asks whether their flattest nets generalise.

They need not. From three layers on, nets that memorise and nets that generalise have the same, least trace, and 1-SAM
finds the first from the ordinary start: scenario II.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

import steppe
from steppe.experiments import Finding
from steppe.papers.wen2023 import explicit
from steppe.papers.wen2023._paper import PAPER, training_figure
from steppe.papers.wen2023.run_claims import NEARLY, spread
from steppe.papers.wen2023.theory import bounds, deep_no_bias
from steppe.papers.wen2023.training import Training, gd, sam

_DEPTHS = (3, 4)


def flattest_without_bias(build: Any, *, error: float) -> Finding:
    """The largest |excess| over the bound of `build(x, y, depth)` on P_xor, d = 30, n = 100, for several depths; and
    its error on unseen corners, d = 8, must be `error`."""
    data = steppe.data.xor(30, 100, replace=False, key=0)
    few = steppe.data.xor(8, 60, replace=False, key=0)
    corners = explicit.cube(8)
    unseen = corners[~(corners[:, None] == few.x[None]).all(axis=2).any(axis=1)]
    excesses, errors = [], []
    for depth in _DEPTHS:
        trace, loss = explicit.measured(build(data.x, data.y, depth), data.x, data.y)
        least = bounds.deep_no_bias(data.x, data.y, depth)
        excesses.append(abs(trace / least - 1) if loss < explicit.ROUNDING**2 else np.inf)
        f = explicit.outputs(build(few.x, few.y, depth), unseen)
        errors.append(float(np.mean(unseen[:, 0] * unseen[:, 1] * f <= 0)))
    holds = max(excesses) < explicit.ROUNDING and set(errors) == {error}
    return Finding(max(excesses), holds, f"depths {_DEPTHS}, error on unseen corners {errors[0]:g}")


@PAPER.claim(
    "deep-no-bias-memorises", "Section 6",
    "From three layers on, a net without bias that is wrong on every unseen point has the least trace.",
    "excess over the bound 0, error 1 on unseen corners",
    control="tests/papers/wen2023/test_deep_no_bias.py::test_the_check_tells_the_two_nets_apart",
)  # fmt: skip
def memorises() -> Finding:
    return flattest_without_bias(deep_no_bias.memorising, error=1.0)


@PAPER.claim(
    "deep-no-bias-generalises", "Section 6", "Another one of the same trace makes no error.",
    "excess over the bound 0, error 0 on unseen corners",
    control="tests/papers/wen2023/test_deep_no_bias.py::test_the_check_tells_the_two_nets_apart",
)  # fmt: skip
def generalises() -> Finding:
    return flattest_without_bias(lambda x, y, depth: deep_no_bias.generalising(x.shape[1], depth), error=0.0)


def _figure(id: str, title: str, row: Any, smoke: int) -> Any:
    return training_figure(
        id, title, Training("no-bias", (row,), depth=3, width=100), smoke=(smoke,), smoke_width=60, smoke_seeds=2,
        paper_seeds=5, heading="Section 6",
    )  # fmt: skip


deep_gd = _figure("deep-no-bias-gd", "3 layers, no bias, SGD with weight decay", gd(0.01, 1, 0.05, 20_000), 300)
deep_sam = _figure("deep-no-bias-sam", "3 layers, no bias, 1-SAM", sam(0.01, 0.05, 100_000), 1_500)


@PAPER.claim(
    "deep-no-bias-runs", "Section 6", "Three layers without bias: 1-SAM comes near the bound and fails to generalise, "
    "SGD with weight decay generalises.",
    f"median accuracies < {NEARLY} and ≥ {NEARLY}, traces of 1-SAM within 5% of the least of nets with their outputs "
    "(smaller runs: 1-SAM has the lower median, traces within 50%)", needs=(deep_gd, deep_sam),
    control="tests/papers/wen2023/test_deep_no_bias.py::test_runs_that_generalise_fail_the_claim",
)  # fmt: skip
def scenario_two(baseline: Sequence[Any], runs: Sequence[Any]) -> Finding:
    """The median accuracy of 1-SAM."""
    ends = [[e.result["final"]["test_accuracy"] for e in found] for found in (baseline, runs)]
    excesses = [e.result["final"]["trace"] / e.result["final"]["least_trace"] - 1 for e in runs]
    middle = [float(np.median(found)) for found in ends]
    if max(e.spec["width"] for e in runs) >= 100:
        holds = middle[1] < NEARLY <= middle[0] and max(excesses) <= 0.05
    else:
        holds = middle[1] < middle[0] and max(excesses) <= 0.5
    detail = f"1-SAM {spread(ends[1])}; SGD {spread(ends[0])}; traces {min(excesses):.1%} to {max(excesses):.1%} above"
    return Finding(middle[1], holds, detail)
