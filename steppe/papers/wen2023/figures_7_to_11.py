"""Figures 7 to 11 of wen2023 (appendix B) and the claims on them: another distribution, another loss, another depth."""

from collections.abc import Sequence
from typing import Any

from steppe.experiments import Finding
from steppe.papers.wen2023 import run_claims as claim
from steppe.papers.wen2023._paper import PAPER, training_figure
from steppe.papers.wen2023.figures_1_to_6 import fig1b, fig4a, fig4b
from steppe.papers.wen2023.run_claims import NEARLY, PERFECT, ratio
from steppe.papers.wen2023.training import Training, gd, sam

# Figure 7: inputs uniform in a ball, real labels.

fig7a = training_figure(
    "fig7a", "uniform ball, no bias, 1-SAM",
    Training("no-bias", (sam(0.01, 0.2, 1e5),), data="ball", d=10), smoke=(4_000,),
)  # fmt: skip
fig7b = training_figure(
    "fig7b", "uniform ball, bias, 1-SAM",
    Training("bias", (sam(0.01, 0.2, 1e5),), data="ball", d=10), smoke=(8_000,),
)  # fmt: skip

PAPER.claim(
    "fig7-bias-worse", "Figure 7", "On the uniform ball, 1-SAM generalises much better without bias than with.",
    "ratio of test losses 7b/7a above 2 in every seed", needs=(fig7a, fig7b),
)(lambda without, bias: ratio(bias, without, "test_loss", least=2))  # fmt: skip

claim.attains_bound(fig7b, "Section 6, Theorem 4.1", "Uniform ball, bias", smaller=0.1)

# Figures 8 and 9: the logistic loss with label smoothing 0.2, without bias and with it.

fig8a = training_figure(
    "fig8a", "logistic, no bias, SGD with weight decay",
    Training("no-bias", (gd(0.1, 10, 0.01, 1e5),), loss="logistic:0.2"), smoke=(4_000,),
)  # fmt: skip
fig8b = training_figure(
    "fig8b", "logistic, no bias, 1-SAM",
    Training("no-bias", (sam(0.1, 0.2, 1e5),), loss="logistic:0.2"), smoke=(4_000,),
)  # fmt: skip

claim.generalises(fig8a, "Figure 8a", "Logistic loss, no bias: SGD with weight decay", PERFECT)
claim.generalises(fig8b, "Figure 8b", "Logistic loss, no bias: 1-SAM", PERFECT)
claim.trace_falls(fig8a)

fig9a = training_figure(
    "fig9a", "logistic, bias, SGD with weight decay",
    Training("bias", (gd(0.01, 1, 0.05, 1e5),), loss="logistic:0.2"), smoke=(4_000,),
)  # fmt: skip
fig9b = training_figure(
    "fig9b", "logistic, bias, 1-SAM",
    Training("bias", (sam(0.1, 0.2, 1e5),), loss="logistic:0.2"), smoke=(8_000,),
)  # fmt: skip

claim.generalises(fig9a, "Figure 9a", "Logistic loss, bias: SGD with weight decay", NEARLY)
claim.flatter_and_worse(fig9a, fig9b, "Figure 9", "Logistic loss, bias")
claim.accuracy_falls(fig9b, "Figure 9", "Logistic loss, bias")
claim.attains_bound(fig9b, "Section 6, Lemma A.13", "Logistic loss, bias", smaller=0.05)
claim.peak(
    fig9b, "Figure 9, caption", "Logistic loss, bias: 1-SAM starts to degenerate after 2,000 epochs.",
    stated=2_000, factor=5,
)  # fmt: skip

PAPER.claim(
    "fig8b-fig9b-architecture", "Figure 9, caption", "The difference between 8b and 9b is that between 1b and 4b.",
    "ratio of accuracies 8b/9b above 1 in every seed", needs=(fig8b, fig9b),
)(lambda without, bias: ratio(without, bias, "test_accuracy"))  # fmt: skip

# Figure 10: the logistic loss, with normalisation.

fig10a = training_figure(
    "fig10a", "logistic, simplified BatchNorm, 1-SAM",
    Training("sim-bn", (sam(0.1, 0.2, 4e4),), gamma=1.0, loss="logistic:0.2"), smoke=(1_000,), smoke_seeds=1,
)  # fmt: skip
fig10b = training_figure(
    "fig10b", "logistic, simplified LayerNorm, 1-SAM",
    Training("sim-ln", (sam(1.0, 0.5, 1e3), sam(1.0, 1.0, 1e5)), loss="logistic:0.2", first_layer_scale=0.01),
    smoke=(500, 3_000),
)  # fmt: skip

claim.generalises(fig10a, "Figure 10a", "Logistic loss, simplified BatchNorm: 1-SAM", NEARLY)
claim.generalises(fig10b, "Figure 10b", "Logistic loss, simplified LayerNorm: 1-SAM", NEARLY)

# Figure 11: three layers.

fig11a = training_figure(
    "fig11a", "3 layers, bias, SGD with weight decay",
    Training("bias", (gd(0.01, 1, 0.05, 1e5),), depth=3), smoke=(500,),
)  # fmt: skip
fig11b = training_figure(
    "fig11b", "3 layers, bias, 1-SAM", Training("bias", (sam(0.01, 0.05, 1e5),), depth=3), smoke=(500,)
)

claim.flatter_and_worse(fig11a, fig11b, "Figure 11", "Three layers, bias")
claim.attains_bound(fig11b, "Section 6, Theorem 4.1", "Three layers, bias", smaller=0.3)


@PAPER.claim(
    "eq3-bound", "Eq. 3, Theorem 4.1, Lemma A.13",
    "tr ∇²L is at least the bound at the net's own outputs, for every ReLU net without normalisation, either loss.",
    "ratio of trace to bound ≥ 1 at every record", needs=(fig1b, fig4a, fig4b, fig7b, fig9b, fig11b),
)  # fmt: skip
def never_below_bound(*figures: Sequence[Any]) -> Finding:
    """The smallest ratio of the trace to its bound along all these runs."""
    ratios = [float((e.curves["trace"] / e.curves["least_trace"]).min()) for runs in figures for e in runs]
    # The trace is summed in float32 over some 10⁴ terms.
    return Finding(min(ratios), min(ratios) >= 1 - 1e-5, f"{len(ratios)} runs, every record")
