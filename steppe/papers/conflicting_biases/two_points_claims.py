"""The claims of appendix F: two points, logistic loss, and the errors of their classifiers."""

from steppe.experiments._paper import Claim
from steppe.papers.conflicting_biases.deferred import pair, runs, theory

_F = "two_points_checks"
_SMALL = "difference at rounding"
_FEW = "within 4 standard errors"

CLAIMS = (
    Claim("thmF.1-margin", "Theorem F.1 i", "The max-margin classifier is (x̃₂, −½).", "difference < 1e-6",
          theory(_F, "max_margin")),
    Claim("thmF.1-sharpness", "Theorem F.1 ii", "The least sharpness over M is 0.277, at (z, b) = (1, 0).",
          "0.277 at (1, 0)", theory(_F, "least_sharpness")),
    Claim("thmF.1-formula", "proof of F.1", "S = ¼(g′(b) + 2g′(z+b) + √(g′(b)² + 4g′(z+b)²)).", _SMALL,
          theory(_F, "sharpness_formula")),
    *pair("appF-loss", "appendix F", "L = ½(log(1 − g(b)) + log g(z + b)) is a loss (not negative, convex).",
           "L = −½(log(1 − g(b)) + log g(z + b)) is.", "values and eigenvalues ≥ 0", _F, "loss_sign"),
    *pair("thmF.1-quadratic", "proof of F.1", "The maximal root of λ² + (½g′(b) + g′)λ + ¼g′(b)g′ is S.",
           "The maximal root of λ² − (½g′(b) + g′)λ + ¼g′(b)g′ is S.", _SMALL, _F, "quadratic"),
    *pair("thmF.1-matrix", "proof of F.1",
          "The 2 × 2 system with ½g′(z+b) at the upper right is singular at eigenvalues.",
           "… with ½g′(b) at the upper right.", "determinant at rounding", _F, "matrix"),
    *pair("appF-small-mean", "appendix F, ‖μ‖ ≪ 1",
           "Max-margin error Γ(d/2+½)/(Γ(d/2)Γ(½)) ∫_{−1}^½ (1−t²)^{d/2−1} dt.",
           "Max-margin error Γ(d/2)/(Γ((d−1)/2)Γ(½)) ∫_{−1}^½ (1−t²)^{(d−3)/2} dt.", _FEW, _F, "small_mean"),
    Claim("appF-grows", "appendix F, ‖μ‖ ≪ 1", "… which tends to 1 as d grows.",
          "monotone, 1 − error < 1e-9 at d = 128",
          theory(_F, "grows_to_one")),
    Claim("appF-half", "appendix F, ‖μ‖ ≪ 1", "The error of the flattest classifier is ½.", _FEW, theory(_F, "half")),
    Claim("appF-flattest-better", "appendix F", "The flattest classifier errs less than the max-margin one.",
          "ratio < 1 for all ‖μ‖", runs(_F, "flattest_better"), ("appF",)),
    Claim("appF-exact", "beyond appendix F", "Both errors exactly, for every ‖μ‖: quadrature and a non-central F.",
          "within 4.5 standard errors", runs(_F, "exact_errors"), ("appF",)),
    Claim("appF-large-mean-printed", "appendix F, ‖μ‖ ≫ 1",
          "P[⟨g₀+g₀′,μ⟩ ≤ −½‖μ‖²] = (2π)^{−(d−1)/2} Φ(−‖μ‖/(2√2)), alike with −‖μ‖² and Φ(−‖μ‖/√2).", _FEW,
          theory(_F, "event", form="factor"), misprint=True),
    Claim("appF-large-mean-integral-printed", "appendix F, ‖μ‖ ≫ 1",
          "… = 1/(√2 (2π)^{d/2}) ∫_{−∞}^{−½‖μ‖²} e^{−x²/4} dx.", _FEW, theory(_F, "event", form="integral"),
          misprint=True),
    Claim("appF-large-mean-corrected", "appendix F, corrected",
          "… = Φ(−‖μ‖/(2√2)) and Φ(−‖μ‖/√2), with no factor, the limits being −½‖μ‖ and −‖μ‖.", _FEW,
          theory(_F, "event", form="corrected")),
    *pair("appF-approximation", "appendix F, ‖μ‖ ≫ 1", "The errors are ≈ these: ln error ≈ −(1−c)²‖μ‖²/4, c = ½ and 0.",
           "ln error ≈ −(1−c)‖μ‖²/2: the norms of the points must not be replaced by ‖μ‖.", "exponent within 10%",
           _F, "approximation"),
    Claim("appF-both-small", "appendix F, ‖μ‖ ≫ 1", "Both expected errors are small.", "< 1e-6 at ‖μ‖ = 10",
          theory(_F, "both_small")),
)  # fmt: skip
