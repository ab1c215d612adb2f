"""What the claims ask of one minimum: its sharpness, its flattest implementation, its function, its kinks."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from steppe.papers.mulayoff2021.theory import flattest, function_space, stability

# A run ends at a loss of 1e-8, within about 1e-4 of a minimum: kinks that close to a training point are on it.
KINK = 1e-4
CAP = 64
_LINKS = ("sharpness", "mean", "product", "thresholds", "neurons", "function")
NAMES = (
    *_LINKS, "slack", "flattest", "flattest_lower", "flattest_gap", "top_gap", "weighted", "roughness", "centre",
    "variation", "kinks", "crowd", "upper_sharpness", "upper_sharpness_most", "entry", "theorem_2", "excursion",
)  # fmt: skip


def analysed(params: Mapping[str, Any], x: Any, lr: float) -> dict[str, float]:
    """All of NAMES for one interpolator on inputs x, reached with step size lr.

    `centre` is ∫|f″| over the middle half of the data's interval, `weighted` is ∫|f″|g, `excursion` the worst ratio of
    distances from the minimum found by simulation nearby.
    """
    inputs = np.asarray(x)[:, None]
    chain = function_space.chain(params, inputs)
    best = flattest.flattest_implementation(params, inputs)
    f, low, width = function_space.piecewise_linear(params), float(np.min(x)), float(np.ptp(x))
    modes = stability.modes(params, inputs, rtol=KINK)
    upper = stability.upper_sharpness(modes, cap=CAP)
    entry = modes.largest_entry()
    values = {
        **{name: value for name, value in asdict(chain).items() if value is not None},
        "slack": chain.slack,
        "flattest": best.value,
        "flattest_lower": best.lower,
        "flattest_gap": best.gap,
        "top_gap": 1 - best.certificate.top / best.value,
        "weighted": function_space.weighted_roughness(f, x),
        "roughness": f.roughness(low, low + width),
        "centre": f.roughness(low + width / 4, low + 3 * width / 4),
        "variation": f.variation(low, low + width),
        "kinks": float(len(modes.kinks)),
        "crowd": float(modes.crowd),
        "upper_sharpness": upper.lower,
        "upper_sharpness_most": upper.upper,
        "entry": entry,
        "theorem_2": stability.theorem_2(lr, entry, modes.crowd, len(inputs)),
        "excursion": stability.excursion(modes, lr, starts=8, steps=100).worst,
    }
    return {name: float(values[name]) for name in NAMES}
