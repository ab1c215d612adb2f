"""The claims on the risk: Lemma E.1, Proposition E.2 and its folded Gaussian."""

from steppe.experiments._paper import Claim
from steppe.papers.conflicting_biases.deferred import pair, runs, theory

_K, _E = "kkt_checks", "expected_checks"
_SMALL = "difference at rounding"
_FEW = "within 4 standard errors"

CLAIMS = (
    Claim("lemE.1-risk", "Lemma E.1", "R(w) = ½‖w‖₄⁴ − ‖w‖² + ½(d + 1).", _SMALL, theory(_K, "risk_formula")),
    Claim("lemE.1-kkt", "Lemma E.1", "The listed points satisfy all KKT conditions.", _SMALL,
          theory(_K, "kkt_conditions")),
    Claim("lemE.1-complete", "Lemma E.1", "There are no others: what an optimiser finds is on the list.",
          "distance < 1e-4, the optimiser's own", theory(_K, "kkt_complete")),
    Claim("lemE.1-global", "after Lemma E.1", "The global minimum, here from a convex program in w².", _SMALL,
          theory(_K, "kkt_global")),
    *pair("lemE.1-positivity", "Lemma E.1", "w² > 0 on the support iff 2ηλxᵢ + νxᵢ < 1.",
           "w² > 0 on the support iff 2ηλxᵢ² + νxᵢ < 1.", "never wrong", _K, "positivity"),
    *pair("lemE.1-support", "Lemma E.1, Eq. 13", "Eq. 13 gives (λ, ν) on every support if x is no multiple of 1.",
           "… on the supports where the non-zero entries of x differ.", "denominator > 0", _K, "tied_support"),
    *pair("lemE.1-tied", "Lemma E.1, Eq. 14", "For x = α1, w from any (λ ≥ 0, ν) with Eq. 14 is a KKT point.",
           "… if 2ηαy ≤ 1: S is 4αy on all of M.", "S ≤ 2/η", _K, "tied_infeasible"),
    *pair("propE.2-norm", "Proposition E.2 i", "E R(A_ℓ1) = ½(σ² + E Σ_kk y²/x² + E μ_k y/x), k = k_max.",
           "E R(A_ℓ1) = ½(σ² + E Σ_kk y²/x² − 2E μ_k y/x).", _FEW, _E, "single_entry", "norm"),
    *pair("propE.2-sharpness", "Proposition E.2 ii", "E R(A_S) = ½(σ² + E Σ_kk y²/x² + E μ_k y/x), k = k_min.",
           "E R(A_S) = ½(σ² + E Σ_kk y²/x² − 2E μ_k y/x).", _FEW, _E, "single_entry", "sharpness"),
    *pair("propE.2-optimal", "Proposition E.2 iii", "A_opt is the root of Σ^{−½}(P⊥μ_Σ + y x_Σ/‖x_Σ‖²), which is ≥ 0.",
           "A_opt is the root of the minimiser over u ≥ 0, another one where that vector has negative entries.",
           "no negative entry; equal to the optimum", _E, "optimal"),
    Claim("propE.2-optimal-risk", "Proposition E.2 iii",
          "The stated risk is that of the stated vector, and a lower bound.",
          _SMALL, theory(_E, "optimal_formula")),
    Claim("appE.1-moments", "appendix E.1", "Σ, μ, σ² of the folded Gaussian; there A_opt = 1 with risk 0.", _FEW,
          theory(_E, "folded_moments")),
    Claim("appE.1-norm-printed", "appendix E.1", "Folded Gaussian: E R(A_ℓ1) with + (2n−2+π)/π E⟨1,x⟩/x_max.", _FEW,
          runs(_E, "folded_printed"), ("propE2",), misprint=True),
    Claim("appE.1-norm-corrected", "appendix E.1, corrected",
          "… with − 2(2n−2+π)/π E⟨1,x⟩/x_max, finite; the two ratios are at most n² and n.", _FEW,
          runs(_E, "folded_norm"), ("propE2",)),
    Claim("appE.1-infinite", "appendix E.1",
          "Folded Gaussian: E R(A_S) is infinite (it grows like 1/δ over x_min > δ).",
          "slope in ln(1/δ) > 0.95", runs(_E, "folded_infinite"), ("propE2",)),
    Claim("appE.1-infinite-ratio", "appendix E.1", "E⟨1,x⟩/x_min is infinite: it grows by n(n−1)2/π per e in 1/δ.",
          "ratio 1 within 0.1%", theory(_E, "folded_log")),
)  # fmt: skip
