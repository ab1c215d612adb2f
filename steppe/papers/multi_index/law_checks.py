"""Checks of the theorems as scaling laws: exponents with 95% intervals over all draws."""

from typing import Any

from steppe.experiments._paper import Evidence, Finding
from steppe.papers.multi_index.reading import NAMES, Exponent, exponent

# A law is met where its exponent lies in the interval; one narrower than this is not believed, since the sizes are
# finite and the laws hold up to logarithms.
_WIDTH = 0.15


def _degree(entry: Any) -> int:
    return 2 if entry.spec["activation"] == "quadratic" else 1


def _columns(entry: Any) -> dict[str, Any]:
    curves = entry.curves
    seen = curves["exists"] > 0 if "exists" in curves else slice(None)
    return {name: column[seen] for name, column in curves.items()}


def _meets(law: Exponent, predicted: float) -> bool:
    return min(law.low, law.value - _WIDTH) <= predicted <= max(law.high, law.value + _WIDTH)


def _laws(entries: Any, of: Any, size: str, predicted: Any) -> tuple[dict[str, Exponent], dict[str, float]]:
    """The exponent of of(columns) in `size`, and what is predicted, by activation."""
    laws, expected = {}, {}
    for entry in entries:
        c, name = _columns(entry), NAMES[entry.spec["activation"]]
        laws[name], expected[name] = exponent(c[size], of(c)), predicted(_degree(entry))
    return laws, expected


def _told(laws: dict[str, Exponent], expected: dict[str, float]) -> str:
    return "; ".join(f"{name}: {law}, predicted {expected[name]:.2f}" for name, law in laws.items())


def meets(evidence: Evidence, id: str, column: str, size: str, predicted: Any) -> Finding:
    """Two-sided: the exponent is the predicted one."""
    laws, expected = _laws(evidence[id], lambda c: c[column], size, predicted)
    away = max(abs(law.value - expected[name]) for name, law in laws.items())
    return Finding(away, all(_meets(law, expected[name]) for name, law in laws.items()), _told(laws, expected))


def at_least(evidence: Evidence, id: str, of: Any, size: str, predicted: Any) -> Finding:
    """One-sided: it grows, not slower than predicted; measured is the smallest exponent over its prediction."""
    laws, expected = _laws(evidence[id], of, size, predicted)
    holds = all(
        law.value > 0 and max(law.high, law.value + _WIDTH) >= expected[name] for name, law in laws.items()
    )  # fmt: skip
    return Finding(min(law.value / expected[name] for name, law in laws.items()), holds, _told(laws, expected))


def sandwich(evidence: Evidence) -> Finding:
    """Theorem 4's flatness over the bound below all interpolators, the largest: how well the least is known."""
    import numpy as np

    entries = [e for id in ("thm2-all", "thm1-d", "thm2-n") for e in evidence[id]]
    ratios = {}
    for name in dict.fromkeys(NAMES[e.spec["activation"]] for e in entries):
        found = [e.curves["teacher"] / e.curves["pointwise"] for e in entries if NAMES[e.spec["activation"]] == name]
        ratios[name] = np.concatenate(found)
    worst, least = max(r.max() for r in ratios.values()), min(r.min() for r in ratios.values())
    detail = "; ".join(
        f"{n}: median {np.median(r):.3f}, from {r.min():.3f} to {r.max():.3f}" for n, r in ratios.items()
    )
    return Finding(float(worst), bool(least >= 1 and worst <= 2), detail)


def bad_loss(evidence: Evidence) -> Finding:
    """Population loss of bad interpolators over E g², the smallest."""
    import numpy as np

    powers = {"relu": 0.5, "quadratic": 3.0}
    ratios = np.concatenate([
        _columns(e)["bad_loss"] / powers[e.spec["activation"]] for id in ("thm2-all", "thm1-d", "thm2-n")
        for e in evidence[id]
    ])  # fmt: skip
    return Finding(
        float(ratios.min()), bool(ratios.min() >= 0.5), f"{len(ratios)} draws, median {np.median(ratios):.2f}"
    )


def singular(evidence: Evidence) -> Finding:
    """σ₁ ∝ √(nm) ∝ n; σ₂ grows at most, σₙ at least like √m ∝ n^½, sizes in proportion."""
    laws, expected, holds = {}, {}, []
    for entry in evidence["thm2-all"]:
        c, name = entry.curves, NAMES[entry.spec["activation"]]
        for column, power in (("singular_1", 1.0), ("singular_2", 0.5), ("singular_n", 0.5)):
            key = f"{name}, σ{'₁₂ₙ'['12n'.index(column[-1])]}"
            laws[key], expected[key] = exponent(c["n"], c[column]), power
            below = min(laws[key].low, laws[key].value - _WIDTH) <= power
            above = max(laws[key].high, laws[key].value + _WIDTH) >= power
            holds.append({"1": below and above, "2": below, "n": above}[column[-1]])
    away = max(abs(law.value - 1.0) for name, law in laws.items() if name.endswith("σ₁"))
    return Finding(away, all(holds), _told(laws, expected))


def costs(evidence: Evidence) -> Finding:
    """q of the cheapest and of the dearest neuron ∝ d^{c/(c+1)}, the dimension alone."""
    laws, expected = {}, {}
    for entry in evidence["thm1-d"]:
        c, degree, name = entry.curves, _degree(entry), NAMES[entry.spec["activation"]]
        for column in ("q_low", "q_high"):
            laws[f"{name}, {column}"] = exponent(c["d"], c[column])
            expected[f"{name}, {column}"] = degree / (degree + 1)
    away = max(abs(law.value - expected[name]) for name, law in laws.items())
    return Finding(away, all(_meets(law, expected[n]) for n, law in laws.items()), _told(laws, expected))


def rate(evidence: Evidence, column: str) -> Finding:
    """The population loss falls, at least like n^{−½}: the slowest exponent."""
    laws, expected = _laws(evidence["thm3"], lambda c: c[column], "n", lambda c: -0.5)
    highest = max(law.value for law in laws.values())
    sizes = [float(e.curves[column].max()) for e in evidence["thm3"]]
    return Finding(
        highest,
        highest <= -0.5 and all(law.high < 0 for law in laws.values()),
        _told(laws, expected) + f"; largest loss {max(sizes):.3g}",
    )


def existence(evidence: Evidence) -> Finding:
    """Lemma 13's flatness over Theorem 4's, the largest, and how it grows."""
    laws, expected = _laws(evidence["thm3"], lambda c: c["patched"] / c["teacher"], "n", lambda c: 0.0)
    worst = max(float((e.curves["patched"] / e.curves["teacher"]).max()) for e in evidence["thm3"])
    # Half of the neurons for the link cost 2^{(c−1)/(c+1)}, the noise the rest: a constant, not a law.
    return Finding(worst, worst <= 10 and all(law.low <= _WIDTH for law in laws.values()), _told(laws, expected))


def balanced(evidence: Evidence, activation: str, *, as_printed: bool) -> Finding:
    """One neuron along u among random ones: m‖a‖_∞ of its flattest interpolator, and its flatness over Theorem 4's.

    As printed a flattest interpolator, within 10% of Theorem 4's, must have m‖a‖_∞ bounded.
    """
    (entry,) = (e for e in evidence["thm3"] if e.spec["activation"] == activation)
    c = entry.curves
    over, largest = c["alone"] / c["teacher"], c["m"] * c["alone_largest"]
    law = exponent(c["m"], largest if as_printed else over)
    if as_printed:
        flat = bool((over <= 1.1).all())
        detail = f"m‖a‖_∞ ∝ m^{law}, at flatness {over.min():.4f} to {over.max():.4f} times Theorem 4's"
        return Finding(law.value, not (flat and law.low > 0.5), detail)
    return Finding(law.value, law.low > 0, f"flatness over Theorem 4's ∝ m^{law}, predicted 0.33: not flattest")


def balanced_flattest(evidence: Evidence) -> Finding:
    """m‖a‖_∞ of the flattest interpolators with half of the neurons along u: how it grows with m."""
    laws, expected = _laws(evidence["thm3"], lambda c: c["m"] * c["largest"], "m", lambda c: 0.0)
    highest = max(law.value for law in laws.values())
    return Finding(highest, highest < 0.5, _told(laws, expected))


def noise_in_the_way(evidence: Evidence) -> Finding:
    """Approximate interpolation: the least loss over τ relative to that at τ = 0, the median of the draws."""
    import numpy as np

    shares = {}
    for e in evidence["approximate"]:
        loss = e.curves["loss"].reshape(-1, len(e.spec["shares"]))
        shares[NAMES[e.spec["activation"]]] = float(np.median(loss.min(axis=1) / loss[:, 0]))
    worst = max(shares.values())
    return Finding(worst, worst < 0.7, "; ".join(f"{name}: {s:.3g}" for name, s in shares.items()))


def flattest_of_all(evidence: Evidence) -> Finding:
    """Without noise and bias: the loss at the end of the descent over that at its start, the largest."""
    shares, parts = [], []
    for e in evidence["flattest"]:
        if e.spec["noise"] == 0 and not e.spec["bias"]:
            c = e.curves
            shares.append(float(c["loss"][-1] / c["loss"][0]))
            parts.append(
                f"{NAMES[e.spec['activation']]}: flatness {c['flatness'][0]:.3g} → {c['flatness'][-1]:.3g} (Theorem 4: "
                f"{e.result['teacher']:.3g}), loss {c['loss'][0]:.2g} → {c['loss'][-1]:.2g}, "
                f"‖Uw‖ {c['correlation'][-1]:.2f}"
            )
    return Finding(max(shares), max(shares) <= 0.05, "; ".join(parts))
