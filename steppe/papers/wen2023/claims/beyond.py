"""Claims on what goes beyond the paper's figures: sample complexity, a penalised bias, question 2."""

from steppe.experiments._paper import Claim, Evidence, Finding
from steppe.papers.wen2023.beyond import by_size
from steppe.papers.wen2023.claims.checks import last, median, spread


def _rate(evidence: Evidence) -> Finding:
    """The slope of log test loss against log n, between the smallest and the largest set where something is learnt."""
    import numpy as np

    found = by_size(evidence["sample-complexity"], "no-bias", "test_loss")
    n = np.array(sorted(found), dtype=float)
    losses = np.array([median(found[int(k)]) for k in n])
    slope = float(np.polyfit(np.log(n), np.log(losses), 1)[0])
    return Finding(slope, slope <= -1, f"median test losses {', '.join(f'{v:.2g}' for v in losses)}")


def _penalised(evidence: Evidence) -> Finding:
    """The share of wrong answers with the best of the penalties, over that without one."""
    runs = evidence["bias-penalty"]
    by: dict[float, list[float]] = {}
    for e in runs:
        by.setdefault(e.spec["stages"][0]["bias_decay"], []).append(e.result["final"]["test_accuracy"])
    wrong = {penalty: 1 - median(v) for penalty, v in by.items()}
    best = min(share for penalty, share in wrong.items() if penalty > 0)
    # Where nothing is wrong without a penalty it cannot give anything back.
    left = best / wrong[0.0] if wrong[0.0] > 0 else float("inf")
    detail = ", ".join(f"decay {p:g}: {median(v):.3f}" for p, v in sorted(by.items()))
    return Finding(left, left <= 0.5, detail)


def _sharing(evidence: Evidence) -> Finding:
    """How many times more examples share a neuron at the end of III (LayerNorm) than of II (bias)."""
    two, three = last(evidence["fig4b"], "sharing"), last(evidence["fig6a"], "sharing")
    ratios = [b / a for a, b in zip(two, three, strict=False)]
    return Finding(median(ratios), median(ratios) > 1, f"II {spread(two)}; III {spread(three)}")


def _rank(evidence: Evidence) -> Finding:
    """How many times larger the rank of the features is at the end of II than of III."""
    two, three = last(evidence["fig4b"], "feature_rank"), last(evidence["fig6a"], "feature_rank")
    ratios = [a / b for a, b in zip(two, three, strict=False)]
    return Finding(median(ratios), median(ratios) > 1, f"II {spread(two)}; III {spread(three)}")


BEYOND = (
    Claim(
        "thm3.1-rate", "Theorem 3.1", "Without bias the test error of a flattest net falls like d/n or faster in n.",
        "slope of log test loss against log n ≤ −1", _rate, ("sample-complexity",),
    ),
    Claim(
        "bias-penalised", "Beyond", "Weight decay of the bias alone gives scenario II back most of its generalisation.",
        "with the best penalty at most half as many wrong answers", _penalised, ("bias-penalty",),
    ),
    Claim(
        "question2-sharing", "Question 2", "In the minima of III more examples share a neuron than in those of II.",
        "ratio III/II of the share of examples a neuron fires on above 1", _sharing, ("fig4b", "fig6a"),
    ),
    Claim(
        "question2-rank", "Question 2", "The features of the minima in II have a larger rank than in III.",
        "ratio II/III of feature ranks above 1", _rank, ("fig4b", "fig6a"),
    ),
)  # fmt: skip
