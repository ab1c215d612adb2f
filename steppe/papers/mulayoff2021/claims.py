"""The claims of mulayoff2021 on its experiments, measured on every run that counts."""

from steppe.experiments._paper import Claim
from steppe.papers.mulayoff2021 import curve_checks as curves
from steppe.papers.mulayoff2021 import formula_checks as theory
from steppe.papers.mulayoff2021 import minimum_checks as minima
from steppe.papers.mulayoff2021.minimum_checks import ALL

CLAIMS = (
    Claim(
        "lemma1-limit", "Lemma 1, Figure 3",
        "GD settles only at minima with λ_max ≤ 2/η; where there are kinks, in one of the modes.",
        "λ_max η/2 ≤ 1 where runs stop, or else, once settled, in a mode", minima.limit, ALL,
    ),
    Claim(
        "thm1-bound", "Theorem 1", "∫|f″| g ≤ 1/η − ½ for every function that GD converges to.",
        "ratio ≤ 1 at every run", minima.bound, ALL,
    ),
    Claim(
        "lemma4-chain", "Lemma 4, (S33) to (S42)",
        "λ_max ≥ ‖Φ1‖²/n² ≥ … ≥ 1 + 2 Σ|w₁w₂| g(τ) ≥ 1 + 2 ∫|f″| g.",
        "every link ≥ the next, every run", minima.chain, ALL,
    ),
    Claim(
        "fig1-smoother", "Figure 1", "Tripling the step size when the loss passes 0.1 leads to a smoother function.",
        "ratio of ∫|f″| g tripled/constant below 1 in every seed", curves.tripled("weighted"), ("fig1",),
    ),
    Claim(
        "fig1-flatter", "Figure 1", "… and to a flatter minimum.",
        "ratio of λ_max below 1 in every seed", curves.tripled("sharpness"), ("fig1",),
    ),
    Claim(
        "fig3-smoother", "Figure 3, supplement Figures 1, 2", "Solutions get smoother as the step size increases.",
        "rank correlation of ∫|f″| g with η ≤ −0.9", curves.smoother("weighted"), ("fig3",),
    ),
    Claim(
        "fig3-centre", "Supplement, Figures 1, 2", "… particularly at the centre of the training data.",
        "rank correlation of ∫|f″| over the middle half with η ≤ −0.9", curves.smoother("centre"), ("fig3",),
    ),
    Claim(
        "fig3-counts", "Supplement I", "Nearly all of 200 step sizes converge after the warm-up (the paper: 183).",
        "at least three quarters count", curves.counts, ("fig3",),
    ),
    Claim(
        "s-fig3-monotone", "Supplement, Figure 3",
        "From a large initialisation the sharpness falls monotonically with the step size.",
        "no rise above 1% from one η to the next, factors 15 and 10", curves.monotone, ("s-fig3",),
    ),
    Claim(
        "s-fig3-threshold", "Supplement, Figure 3",
        "From a moderate one it is constant up to a threshold, and then follows 2/η.",
        "within 5% on both sides, factors 3, 1 and 0.75", curves.threshold, ("s-fig3",),
    ),
    Claim(
        "s-fig3-counts", "Supplement, Figure 3", "Runs that count, for each initialisation.",
        "at least half, for every factor", curves.init_counts, ("s-fig3",),
    ),
    Claim(
        "flattest-certified", "Supplement XI, (S82) to (S86)",
        "The flattest implementation is found and certified for every run.", "relative gap ≤ 1e-6",
        minima.certified("flattest_gap"), ALL,
    ),
    Claim(
        "flattest-s88", "Supplement XI, (S88)",
        "The top eigenvector alone is a certificate, in all simulations.", "relative gap ≤ 1e-6",
        minima.certified("top_gap"), ALL,
    ),
    Claim(
        "flattest-between", "Lemma 4, Figure 3", "1 + 2∫|f″|g ≤ flattest implementation ≤ the minimum that GD found.",
        "both ratios ≥ 1", minima.between, ALL,
    ),
    Claim(
        "flattest-gd", "Supplement XI", "GD on β finds the flattest implementation.",
        "at most 1% above the certified minimum, never below", minima.descent, ("fig3",),
    ),
    Claim(
        "thm2-bound", "Theorem 2, (S74)", "Minima with kinks: λ_max^upper is below the bound of Theorem 2.",
        "ratio ≤ 1 at every run, settled where it was above", minima.kinks, ALL,
    ),
    Claim(
        "s75-printed", "(S75)", "The bound multiplied out solves λ = 2/η + 2√3 C √λ √(p/n), as printed.",
        "relative residual 0", theory.root_residual(printed=True), misprint=True,
    ),
    Claim(
        "s75-corrected", "(S75), corrected", "… with the last two terms doubled.",
        "relative residual 0", theory.root_residual(printed=False),
    ),
    Claim(
        "f2-printed", "Appendix VI, below (S41)", "f″ = Σ w₁ᵢw₂ᵢ δ(x − τᵢ), as printed.",
        "slope jumps of random nets, relative error 0", theory.jump_error(printed=True), misprint=True,
    ),
    Claim(
        "f2-corrected", "Appendix VI, corrected", "f″ = Σ |w₁ᵢ|w₂ᵢ δ(x − τᵢ).",
        "slope jumps of random nets, relative error 0", theory.jump_error(printed=False),
    ),
    Claim(
        "lemma1-sgd", "Lemma 1", "SGD with any batch size is unstable where λ_max > 2/η.",
        "E‖u‖² grows at η = 1.01 · 2/λ_max for every batch size", theory.sgd_growth, ("fig3",),
    ),
)  # fmt: skip
