"""Claims of multi-index that need no runs."""

from steppe.experiments._paper import Claim
from steppe.papers.multi_index.deferred import Check, pair, theory

_HERE = "theory_checks"


def _both(module: str, name: str) -> tuple[Check, Check]:
    return theory(module, name, as_printed=True), theory(module, name, as_printed=False)


CLAIMS = (
    Claim("prop1", "Proposition 1, Definition 1", "Rescaling neurons changes the flatness and no output.",
          "outputs to rounding, flatness more than twofold", theory(_HERE, "symmetry")),
    Claim("lemma3", "Lemmas 1, 3", "The least flatness over all rescalings is Σ q_k |a_k|^p, p = 2c/(c+1).",
          "relative difference from a search ≤ 1e-10", theory(_HERE, "least_rescaling")),
    *pair("b2-flatter", "Appendix B.2", "By rescaling we cannot make any interpolator flatter.",
          "… not arbitrarily: the least is positive.",
          ("least over rescalings / before = 1", "least over rescalings / before > 0"), _both(_HERE, "flatter")),
    Claim("prop3", "Proposition 3, D.2.1", "E σ(z) is 0 for odd monomials only; Var σ(z) ≥ (E zσ(z))².",
          "ratio ≥ 1", theory(_HERE, "moments")),
    Claim("lemma6", "Lemma 6", "yᵀ(ΦΦᵀ)⁻¹y ≥ ‖y‖²/σ₁².", "ratio ≥ 1 in every draw", theory(_HERE, "least_norm")),
    *pair("lemma7", "Lemma 7",
          "With α₊, α₋ ≠ 0 and separated inner weights, m ≥ n, an interpolator exists almost surely.",
          "… where n ≤ d(d+1)/2 for quadratic activations, which span no more.",
          ("share of draws = 1", "share of draws = 1"), _both(_HERE, "existence")),
    Claim("lemma7-relu", "Lemma 7", "For ReLU with high probability; with one inner weight for all neurons never.",
          "share ≥ 0.9, and 0", theory(_HERE, "existence_relu")),
    Claim("lemma9", "Lemma 9", "Noise adds at most ‖Φ⁺ε‖ to the least norm, whose square has mean σ² tr(ΦΦᵀ)⁻¹.",
          "within four standard errors", theory(_HERE, "noise_norm")),
    Claim("lemma10", "Lemma 10", "Ux given Wx has covariance I − U P_W Uᵀ, at least 1 − ν² under Definition 2.",
          "error of the least eigenvalue ≤ 1e-10", theory(_HERE, "given_the_activations")),
    Claim("prop4", "Proposition 4", "E g² − kᵀK⁺k bounds the loss for any outer weights, and falls as ν grows.",
          "loss/bound ≥ 1", theory(_HERE, "least_loss")),
    Claim("example1", "Example 1", "Inner weights orthogonal to U: the population loss is at least Var g.",
          "ratio ≥ 1 in every draw", theory(_HERE, "complement")),
    Claim("thm4", "Theorem 4",
          "Every direction m/r times with weights cⱼ r/m interpolates, has loss 0 and is flattest.",
          "flatness over the bound below all ≤ 4", theory(_HERE, "teacher")),
    *pair("d6-relu", "Section 1.2, D.6", "ReLU with inner biases: the flattest interpolators still have biases 0.",
          "… one neuron a point is flatter, is flattest of all, and has learned nothing.",
          ("its flatness over that of Theorem 4's network ≥ 1", "its flatness over the least possible = 1"),
          _both("bias_checks", "flattest_has_no_bias")),
    *pair("d6-cost", "D.6", "Without a piece that is 0, a neuron costs least with bias 0 (LeakyReLU).",
          "… for even activations (quadratic); LeakyReLU's cost falls with b < 0.",
          ("least q over b / q at 0 = 1", "least q over b / q at 0 = 1"), _both("bias_checks", "dearer_with_bias")),
)  # fmt: skip
