"""The claims on M and its flattest and shortest points: Lemmas 3.1, C.1, D.1, D.2, Proposition 3.2."""

from steppe.experiments._paper import Claim
from steppe.papers.conflicting_biases.deferred import pair, theory

_G = "geometry_checks"
_SMALL = "difference at rounding"

CLAIMS = (
    Claim("lemC.1-tangent", "Lemmas 3.1, C.1", "M is a manifold with T_w M = (x ⊙ w^{L−1})^⊥, for every depth L.",
          _SMALL, theory(_G, "tangent")),
    Claim("eq11-sharpness", "Eq. 11", "S(w) = 4‖x ⊙ w‖² on M; ∇²L = D_{2(⟨x,w²⟩−y)x} + 4(x ⊙ w)(x ⊙ w)ᵀ everywhere.",
          _SMALL, theory(_G, "hessian")),
    Claim("prop3.2-norm", "Proposition 3.2 i, Eq. 6", "For x > 0 the least ‖w²‖₁ on M is y/x_max.",
          _SMALL, theory(_G, "least_value", "norm")),
    *pair("prop3.2-norm-signs", "Proposition 3.2 i, Lemma D.1 i",
           "For x of any signs the least norm is supported where xᵢ is the entry of largest modulus.",
           "… where xᵢ is the largest entry of the sign of y.", "in every example", _G, "necessary", "norm"),
    Claim("prop3.2-sharpness", "Proposition 3.2 ii, Eq. 7",
          "For any x the least sharpness has one value x₀ on its support: the smallest entry of y's sign.",
          "in every example", theory(_G, "necessary", "sharpness")),
    Claim("lemD.2-sufficient", "Lemma D.2",
          "For x > 0 every w ∈ M supported on arg max (arg min) x attains the minimum.",
          _SMALL, theory(_G, "sufficient")),
    *pair("lemD.2-value", "proof of Lemma D.2", "min S on M is y x_min.", "min S on M is 4 y x_min.", _SMALL,
           _G, "least_value", "sharpness"),
    Claim("lemD.1-jacobian-norm", "proof of Lemma D.1 i", "The displayed ∇G, G = grad ½‖w‖².", _SMALL,
          theory(_G, "proof_jacobian", "norm")),
    *pair("lemD.1-hess-norm", "proof of Lemma D.1 i", "Hess f(u) = P[(1 − ⟨w,xw⟩/‖xw‖²)·x] ⊙ u for f = ½‖w‖².",
           "Hess f(u) = P[1 − (⟨w,xw⟩/‖xw‖²)·x] ⊙ u.", _SMALL, _G, "riemannian", "norm"),
    Claim("lemD.1-jacobian-sharpness", "proof of Lemma D.1 ii", "The displayed ∇G (printed ∇²G), G = grad ½‖xw‖².",
          _SMALL, theory(_G, "proof_jacobian", "sharpness")),
    Claim("lemD.1-hess-sharpness", "proof of Lemma D.1 ii", "Hess f(u) = P(x² − (⟨w,x³w⟩/‖xw‖²)·x) ⊙ u for f = S/8.",
          _SMALL, theory(_G, "riemannian", "sharpness")),
)  # fmt: skip
