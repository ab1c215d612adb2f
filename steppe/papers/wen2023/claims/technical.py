"""What theorems 3.1 and 3.2 say of all flattest minimisers, figure 3, the theory column of table 1, and the technical
lemmas behind them: no training."""

from typing import Any

from steppe.experiments._paper import Claim
from steppe.papers.wen2023.claims.checks import computed
from steppe.papers.wen2023.table1 import ROWS

_NETWORKS = ("no-bias", "bias", "sim-bn", "sim-ln")


def _claim(module: str, id: str, source: str, statement: str, expected: str, name: str, *arguments: Any) -> Claim:
    return Claim(id, source, statement, expected, computed(module, name, *arguments))


def _flattest(*rest: Any) -> Claim:
    return _claim("flattest_checks", *rest)


def _concentration(number: int, statement: str, expected: str) -> Claim:
    return _claim(
        "concentration_checks", f"lemmaA.{number}", f"Lemma A.{number}", statement, expected, f"lemma_a{number}"
    )


def _complexity(number: int, statement: str) -> Claim:
    rest = (f"lemmaA.{number}", f"Lemma A.{number}", statement, "ratio ≤ 1", f"lemma_a{number}")
    return _claim("complexity_checks", *rest)


def _cell(name: str, network: str, theorem: str, all_generalise: bool) -> Claim:
    which = "A flattest minimiser" if all_generalise else "Some flattest minimiser"
    return _flattest(
        f"table1-theory-{network}", f"Table 1, {name}, {theorem}",
        f"{name}: {which} {'makes no error on unseen points' if all_generalise else 'generalises poorly'}.",
        "error 0" if all_generalise else "error > ½ at the least trace", "table_1", network,
    )  # fmt: skip


TECHNICAL = (
    *(_cell(row[0], network, row[2], row[3]) for row, network in zip(ROWS, _NETWORKS, strict=True)),
    _flattest(
        "fig3-memorising", "Figure 3, caption",
        "The memorising net fits its points and puts out 0 on almost all of the circle if ε is small.",
        "share of the circle → 1", "figure_3",
    ),
    _flattest(
        "thm3.1-flattest", "Theorem 3.1", "The flattest 2-MLP-No-Bias of thousands of neurons generalises.",
        "error 0 on unseen corners", "theorem_3_1",
    ),
    _flattest(
        "thmA.1-flattest", "Theorem A.1", "… for other distributions too: Gaussian inputs, y = |x₁| − |x₂|.",
        "test loss ≤ d/n", "theorem_a1",
    ),
    _flattest(
        "lemmaA.1", "Lemma A.1",
        "On a complete training set the least ‖γ ⊙ W₂‖₁ is 2, and its neurons see the first two coordinates only.",
        "2, four neurons, ‖W₁[3:]‖ = 0", "lemma_a1",
    ),
    _flattest(
        "lemmaA.2", "Lemma A.2", "Near that least value nets are near x₁x₂ on the whole cube.",
        "the error falls with the excess, to 0", "lemma_a2",
    ),
    _flattest(
        "lemmaA.4", "Lemma A.4", "The flattest 2-MLP-No-Bias has Σ ‖W₁ⱼ‖|W₂ⱼ| ≤ C C₂/C₁.", "ratio ≤ 1", "lemma_a4"
    ),
    _concentration(5, "(1/n) Σ ‖xᵢ‖² 1[w·xᵢ > 0] is between C₁d and C₂d for all w.", "1/8 and 2 do, for every d"),
    _concentration(6, "(1/n) Σ relu(w·xᵢ)² is between C₁ and C₂ for all unit w.", "1/16 and 2 do, for every d"),
    _concentration(7, "(1/n) Σ |w·xᵢ|² is between 1/2 and 3/2 for n ≥ C log(2/δ).", "fails with probability ≤ δ"),
    _concentration(8, "(1/n) Σ relu(w·xᵢ)² is between 1/8 and 3/2 for n ≥ C log(4/δ).", "fails with probability ≤ δ"),
    _concentration(9, "The unit sphere has an ε-covering of fewer than (2/ε + 1)^d points.", "ratio < 1"),
    _concentration(10, "(1/n) Σ |w·xᵢ|² is between 1/4 and 2 for all unit w, n ≥ Cd log(d/δ).", "in [¼, 2]"),
    _concentration(14, "The square of a σ-subgaussian variable is (4√2σ², 4σ²)-subexponential.", "ratio ≤ 1"),
    _concentration(15, "Hoeffding: Pr(|mean| ≥ t) ≤ 2 exp(−nt²C).", "ratio ≤ 1"),
    _concentration(16, "Bernstein: Pr(|mean − E| ≥ t) ≤ 2 exp(−n min(tC, t²C)).", "ratio ≤ 1"),
    _concentration(17, "Pr(‖x‖² ≥ 32σ²d + 8σ²t) ≤ e^{−t} and E‖x‖⁴ ≤ 2048σ⁴d².", "ratios ≤ 1"),
    _concentration(18, "E ‖x‖² 1[‖x‖ > c] ≤ dσ²/n for some c = O(√(d log(dn)) σ).", "c²/(d log dn) bounded, by 8"),
    _complexity(20, "Massart: R_S ≤ √(2 log|A|/n)."),
    _complexity(21, "Sauer: |A| ≤ Σ_{i ≤ VC} (n choose i)."),
    _claim(
        "complexity_checks", "corollaryA.1", "Corollary A.1", "R_S ≤ √(4 VC log n/n), n ≥ 2.", "ratio ≤ 1",
        "corollary_a1",
    ),
    _claim(
        "complexity_checks", "lemmaA.22", "Lemma A.22", "The VC dimension of half-spaces through 0 is d.",
        "d points shattered, of d + 1 a share < 1 of the dichotomies", "lemma_a22",
    ),
    _claim(
        "complexity_checks", "lemmaA.23", "Lemma A.23", "sup |mean − E f| ≤ 2R_S + 3√(log(4/δ)/n).",
        "fails with probability ≤ δ", "lemma_a23",
    ),
    _claim(
        "complexity_checks", "thmA.3", "Theorem A.3",
        "Without training loss the loss is at most of the order H log³n R² + b log(1/δ)/n.",
        "a constant ≤ 1 does for linear maps", "theorem_a3",
    ),
)  # fmt: skip
