"""What the figures, their captions and table 1 say about trained networks."""

from collections.abc import Callable

from steppe.experiments._paper import Claim, Evidence, Finding
from steppe.papers.wen2023.claims.checks import (
    NEARLY,
    PERFECT,
    accuracy,
    attains,
    fails,
    falls_from_peak,
    last,
    median,
    of_paper_size,
    peak_epoch,
    ratio,
    spread,  # fmt: skip
)
from steppe.papers.wen2023.neurons import table
from steppe.papers.wen2023.table1 import GENERALISES, ROWS


def _never_below_bound(evidence: Evidence) -> Finding:
    """The smallest ratio of trace to its bound along all runs of ReLU nets without normalisation."""
    ratios = [float((e.curves["trace"] / e.curves["least_trace"]).min()) for runs in evidence.values() for e in runs]
    # The trace is summed in float32 over some 10⁴ terms.
    return Finding(min(ratios), min(ratios) >= 1 - 1e-5, f"{len(ratios)} runs, every record")


def _four_features(evidence: Evidence) -> Finding:
    """Cosine of each of the four longest neurons with the nearest (±1, ±1, 0, …); the least of the median seed."""
    import numpy as np

    cosines, patterns = [], []
    for e in evidence["fig2a"]:
        rows = np.asarray(table(e.params["W1"])["rows"])
        lengths = np.linalg.norm(rows, axis=1)
        cosines.append(float((np.abs(rows[:, :2]).sum(axis=1) / np.sqrt(2) / lengths).min()))
        patterns.append(len({tuple(np.sign(row[:2])) for row in rows}))
    detail = f"{spread(cosines)}; different signs among the four: {sorted(patterns)}"
    least = 0.99 if of_paper_size(evidence["fig2a"]) else 0.5**0.5
    return Finding(median(cosines), median(cosines) > least, detail)


def _columns(evidence: Evidence) -> Finding:
    """The smaller norm of the first two columns of W₁ over the largest of the others; the paper has 42.47/5.65."""
    import numpy as np

    ratios = []
    for e in evidence["fig2a"]:
        norms = np.linalg.norm(np.asarray(e.params["W1"], dtype=float), axis=0)
        ratios.append(float(norms[:2].min() / norms[2:].max()))
    return Finding(median(ratios), median(ratios) > 2, spread(ratios))


def _fits(figure: str) -> Callable[[Evidence], Finding]:
    def check(evidence: Evidence) -> Finding:
        found = last(evidence[figure], "train_loss")
        return Finding(median(found), median(found) < 0.1, spread(found))

    return check


def _table1(figure: str, generalises: bool) -> Callable[[Evidence], Finding]:
    return accuracy(figure, lambda a: (a >= GENERALISES) is generalises)


def _title(section: int, setting: str, figure: str, generalising: bool) -> tuple[Claim, Claim]:
    """The titles of sections 4 and 5: both kinds of minimisers exist, and SAM finds the former or the latter."""
    kinds = {True: "generalising", False: "non-generalising"}
    statement = f"{setting}: of the generalising (former) and the non-generalising (latter) minimisers SAM finds …"
    return (
        Claim(
            f"section{section}-title-printed", f"Title of section {section}", statement,
            f"the {'latter' if generalising else 'former'}: {kinds[not generalising]}",
            _table1(figure, not generalising), (figure,), misprint=True,
        ),
        Claim(
            f"section{section}-title-corrected", f"Title of section {section}, corrected", statement,
            f"the {'former' if generalising else 'latter'}: {kinds[generalising]}",
            _table1(figure, generalising), (figure,),
        ),
    )  # fmt: skip


def _pair(figure: str, source: str, setting: str, falls: bool) -> tuple[Claim, ...]:
    """Scenario II: 1-SAM (b) ends flatter than its baseline (a) and generalises worse."""
    a, b = f"{figure}a", f"{figure}b"
    claims = (
        Claim(
            f"{b}-flatter", source, f"{setting}: 1-SAM ends flatter than the baseline.",
            "ratio of traces a/b above 1 in every seed", ratio("trace", a, b), (a, b),
        ),
        Claim(
            f"{b}-generalises-worse", source, f"{setting}: … and generalises worse.",
            "ratio of accuracies a/b above 1 in every seed", ratio("test_accuracy", a, b), (a, b),
        ),
        Claim(
            f"{b}-fails-to-generalise", source, f"{setting}: 1-SAM fails to generalise.",
            f"median test accuracy < {NEARLY} (smaller nets: 0.95)", fails(b, smaller=0.95), (b,),
        ),
    )  # fmt: skip
    fall = Claim(
        f"{b}-accuracy-falls", source, f"{setting}: the test accuracy of 1-SAM degenerates meanwhile.",
        "ends below its peak in every seed", falls_from_peak(b, "test_accuracy"), (b,),
    )  # fmt: skip
    return (*claims, fall) if falls else claims


def _reaches(figure: str, source: str, setting: str, smaller: float, *, own: bool) -> Claim:
    """At the paper's size within 3%; what `smaller` nets reach is what there is time for at smoke scale."""
    least = "of any net with its outputs" if own else "of an interpolator"
    return Claim(
        f"{figure}-attains-bound", source, f"{setting}: 1-SAM approximately reaches the lower bound of the trace.",
        f"within 3% of the least {least}, in every seed (smaller nets: {100 * smaller:g}%)",
        attains(figure, 0.03, smaller=smaller, own_outputs=own), (figure,),
    )  # fmt: skip


def _generalises(figure: str, source: str, setting: str, least: float) -> Claim:
    word = "perfectly" if least == PERFECT else "almost perfectly"
    return Claim(
        f"{figure}-generalises", source, f"{setting} generalises {word}.", f"median test accuracy ≥ {least}",
        accuracy(figure, lambda a: a >= least), (figure,),
    )  # fmt: skip


def _flattens(figure: str) -> Claim:
    return Claim(
        f"{figure}-flattens", f"Figure {figure.removeprefix('fig')[:-1]}, caption",
        "Weight decay does not regularise sharpness explicitly, yet the trace falls through training.",
        "the trace ends below its peak in every seed", falls_from_peak(figure, "trace"), (figure,),
    )  # fmt: skip


def _ball(evidence: Evidence) -> Finding:
    pairs = zip(last(evidence["fig7b"], "test_loss"), last(evidence["fig7a"], "test_loss"), strict=True)
    ratios = [b / a for b, a in pairs]
    return Finding(median(ratios), min(ratios) > 2, spread(ratios))


_BOUNDED = ("fig1b", "fig4a", "fig4b", "fig7b", "fig9b", "fig11b")

RUNS = (
    _generalises("fig1a", "Figure 1a", "Without bias, GD with weight decay", PERFECT),
    _generalises("fig1b", "Figure 1b, Theorem 3.1", "Without bias, 1-SAM", PERFECT),
    _flattens("fig1a"),
    Claim(
        "fig1-sam-flatter", "Figure 1", "1-SAM ends flatter than gradient descent with weight decay (no bias).",
        "ratio of traces 1a/1b above 1 in every seed", ratio("trace", "fig1a", "fig1b"), ("fig1a", "fig1b"),
    ),
    _generalises("fig2a", "Figure 2a, Theorem 3.2", "With simplified BatchNorm, 1-SAM", NEARLY),
    Claim(
        "fig2a-rho-printed", "Table 2, figure 2a", "With ρ = 1 at last the net goes on to fit.",
        "train loss < 0.1", _fits("fig2a-printed"), ("fig2a-printed",), misprint=True,
    ),
    Claim(
        "fig2a-rho-corrected", "Table 2, figure 2a, corrected", "With ρ = 0.6 at last it goes on to fit.",
        "train loss < 0.1", _fits("fig2a"), ("fig2a",),
    ),
    Claim(
        "fig2b-features", "Figure 2b, with a ρ chosen for it",
        "The four longest neurons of the first layer extract ±x₁ ± x₂.",
        "cosine with (±1, ±1, 0, …) > 0.99 (smaller nets: 1/√2, x₁ and x₂ outweigh the rest)",
        _four_features, ("fig2a",),
    ),
    Claim(
        "fig2b-columns", "Section 3.2, with a ρ chosen for it",
        "The first two columns of W₁ are much longer than the others.",
        "ratio > 2 (printed: 42.47/5.65)", _columns, ("fig2a",),
    ),
    Claim(
        "eq3-bound", "Eq. 3, Theorem 4.1, Lemma A.13",
        "tr ∇²L is at least the bound at the net's own outputs, for every ReLU net without normalisation, either loss.",
        "ratio of trace to bound ≥ 1 at every record", _never_below_bound, _BOUNDED,
    ),
    *_pair("fig4", "Figure 4", "Bias", falls=True),
    _reaches("fig4b", "Figure 4b, Theorem 4.1, section 6", "Bias", 0.01, own=True),
    Claim(
        "fig4b-peak", "Figure 4, caption", "Bias: the generalisation of 1-SAM degenerates after 4,000 epochs.",
        "the accuracy's peak within a factor 4 of epoch 4,000", peak_epoch("fig4b", 4_000, 4), ("fig4b",),
    ),
    Claim(
        "fig1b-fig4b-architecture", "Figure 4, caption",
        "The bias alone makes the difference: the same 1-SAM generalises better without it.",
        "ratio of accuracies 1b/4b above 1 in every seed", ratio("test_accuracy", "fig1b", "fig4b"),
        ("fig1b", "fig4b"),
    ),
    *_title(4, "Bias", "fig4b", False),
    *_pair("fig5", "Figure 5", "Softplus", falls=False),
    _generalises("fig6a", "Figure 6a", "With simplified LayerNorm, 1-SAM", NEARLY),
    _generalises("fig6b", "Figure 6b", "With simplified LayerNorm and the first layer's norm held, 1-SAM", NEARLY),
    *_title(5, "Simplified LayerNorm", "fig6a", True),
    _reaches("fig6a", "Section 6, Theorem 5.1", "Simplified LayerNorm", 0.1, own=False),
    Claim(
        "fig7-bias-worse", "Figure 7", "On the uniform ball, 1-SAM generalises much better without bias than with.",
        "ratio of test losses 7b/7a above 2 in every seed", _ball, ("fig7a", "fig7b"),
    ),
    _reaches("fig7b", "Section 6, Theorem 4.1", "Uniform ball, bias", 0.1, own=True),
    _generalises("fig8a", "Figure 8a", "Logistic loss, no bias: SGD with weight decay", PERFECT),
    _generalises("fig8b", "Figure 8b", "Logistic loss, no bias: 1-SAM", PERFECT),
    _flattens("fig8a"),
    *_pair("fig9", "Figure 9", "Logistic loss, bias", falls=True),
    _reaches("fig9b", "Section 6, Lemma A.13", "Logistic loss, bias", 0.05, own=True),
    Claim(
        "fig9b-peak", "Figure 9, caption", "Logistic loss, bias: 1-SAM starts to degenerate after 2,000 epochs.",
        "the accuracy's peak within a factor 5 of epoch 2,000", peak_epoch("fig9b", 2_000, 5), ("fig9b",),
    ),
    Claim(
        "fig8b-fig9b-architecture", "Figure 9, caption", "The difference between 8b and 9b is that between 1b and 4b.",
        "ratio of accuracies 8b/9b above 1 in every seed", ratio("test_accuracy", "fig8b", "fig9b"),
        ("fig8b", "fig9b"),
    ),
    _generalises("fig10a", "Figure 10a", "Logistic loss, simplified BatchNorm: 1-SAM", NEARLY),
    _generalises("fig10b", "Figure 10b", "Logistic loss, simplified LayerNorm: 1-SAM", NEARLY),
    *_pair("fig11", "Figure 11", "Three layers, bias", falls=False),
    _reaches("fig11b", "Section 6, Theorem 4.1", "Three layers, bias", 0.3, own=True),
    *(
        Claim(
            f"table1-{figure}", f"Table 1, {name}", f"{name}: 1-SAM {'generalises' if sam else 'does not generalise'}.",
            f"median test accuracy {'≥' if sam else '<'} {GENERALISES}", _table1(figure, sam), (figure,),
        )
        for name, figure, _, _, sam in ROWS
    ),
)  # fmt: skip
