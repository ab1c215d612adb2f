"""Claims of the theorems as scaling laws, and of what lies beyond the paper."""

from collections.abc import Mapping
from typing import Any

from steppe.experiments._paper import Claim
from steppe.papers.multi_index.deferred import pair, runs

_HERE = "law_checks"
_SIZES = ("thm2-all", "thm1-d", "thm2-n")


def _plus(c: int) -> float:
    return c / (c + 1)


def _one(c: int) -> float:
    return 1 / (c + 1)


def _ratio(c: Mapping[str, Any]) -> Any:
    return c["bad"] / c["teacher"]


def _bad(c: Mapping[str, Any]) -> Any:
    return c["bad"]


CLAIMS = (
    Claim("thm1-dimension", "Theorem 1", "The least flatness grows like d^{c/(c+1)} (Theorem 4's network).",
          "exponent c/(c+1) within its interval", runs(_HERE, "meets", "thm1-d", "teacher", "d", _plus), ("thm1-d",)),
    Claim("thm1-dimension-bound", "Theorem 1", "… and so does the bound below every interpolator.",
          "exponent c/(c+1) within its interval", runs(_HERE, "meets", "thm1-d", "pointwise", "d", _plus), ("thm1-d",)),
    Claim("thm1-all", "Theorem 1", "With d, n, m in proportion: like d^{c/(c+1)} m^{(1−c)/(1+c)} ∝ n^{1/(c+1)}.",
          "exponent 1/(c+1) within its interval", runs(_HERE, "meets", "thm2-all", "teacher", "n", _one),
          ("thm2-all",)),
    Claim("thm1-sandwich", "Theorems 1, 4", "The least flatness is known up to a constant: bound ≤ least ≤ Theorem 4.",
          "ratio between 1 and 2 in every draw", runs(_HERE, "sandwich"), _SIZES),
    Claim("thm2-ratio", "Theorem 2, Informal Theorem 1",
          "Bad interpolators are sharper than the flattest by at least n^{c/(c+1)}.",
          "exponent at least c/(c+1) − 0.15, sizes in proportion",
          runs(_HERE, "at_least", "thm2-all", _ratio, "n", _plus), ("thm2-all",)),
    Claim("thm2-sample", "Theorem 2", "Their flatness grows at least like n^{c/(c+1)} m^{(1−c)/(1+c)} ∝ n^{1/(c+1)}.",
          "exponent at least 1/(c+1), d fixed", runs(_HERE, "at_least", "thm2-n", _bad, "n", _one), ("thm2-n",)),
    Claim("thm2-bad", "Definition 2, Theorem 2", "… and their population loss stays large.",
          "loss ≥ half of predicting 0's, every draw", runs(_HERE, "bad_loss"), _SIZES),
    Claim("lemma2-values", "Lemma 2", "The largest singular value of Φ is of order √(nm), all others of order √m.",
          "exponents 1; at most ½; at least ½, sizes in proportion", runs(_HERE, "singular"), ("thm2-all",)),
    Claim("lemma4", "Lemmas 1, 4", "A neuron of unit norm costs q of order d^{c/(c+1)}, the cheapest and the dearest.",
          "exponent c/(c+1) within its interval", runs(_HERE, "costs"), ("thm1-d",)),
    Claim("thm3-rate", "Theorems 3, 5",
          "Flattest interpolators of labels with noise of variance 0.1/n generalise.",
          "population loss falls at least like n^{−½}", runs(_HERE, "rate", "loss"), ("thm3",)),
    Claim("thm3-worst", "Theorems 3, 5", "… and so does the worst one found among those of twice the trace.",
          "population loss falls at least like n^{−½}", runs(_HERE, "rate", "spoiled_loss"), ("thm3",)),
    Claim("lemma13", "Lemma 13, Theorem 3",
          "An interpolator of the noise too exists that is flattest up to a constant.",
          "flatness over Theorem 4's bounded, not growing with n", runs(_HERE, "existence"), ("thm3",)),
    Claim("prop2-balanced", "Proposition 2",
          "Flattest interpolators with half of the neurons along u have ‖a‖_∞ ~ 1/m.",
          "m‖a‖_∞ ∝ m^b, b < ½ (a single neuron: 1)", runs(_HERE, "balanced_flattest"), ("thm3",)),
    *pair("prop2-necessary", "Proposition 2",
          "An interpolator is flattest only if ‖a‖_∞ ~ 1/m (here degree c = 1).",
          "… for c > 1: at c = 1 one neuron does as well as m, at c = 2 it is not flattest.",
          ("m‖a‖_∞ bounded wherever the flatness is Theorem 4's", "its flatness over Theorem 4's grows with m"),
          (runs(_HERE, "balanced", "relu", as_printed=True), runs(_HERE, "balanced", "quadratic", as_printed=False)),
          ("thm3",)),
    Claim("approximate-better", "Section 7, future work, ours",
          "Under constant noise approximate interpolation generalises better than interpolation.",
          "least loss over τ below 0.7 of that at τ = 0", runs(_HERE, "noise_in_the_way"), ("approximate",)),
    Claim("flattest-of-all", "Section 7, ours",
          "Descent on the inner weights too, from ν = 0.05, finds interpolators that generalise.",
          "loss at its end ≤ 5% of that at its start, without noise", runs(_HERE, "flattest_of_all"), ("flattest",)),
)  # fmt: skip
