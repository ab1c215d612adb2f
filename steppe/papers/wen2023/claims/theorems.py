"""The theorems, propositions and lemmas of wen2023, on explicit nets and on random numbers: no training."""

from typing import Any

from steppe.experiments._paper import Claim
from steppe.papers.wen2023.claims.checks import computed


def _claim(id: str, source: str, statement: str, expected: str, name: str, *arguments: Any) -> Claim:
    return Claim(id, source, statement, expected, computed("theorem_checks", name, *arguments))


THEOREMS = (
    _claim(
        "lemma3.1-norms",
        "Lemmas 3.1, A.5 and A.11",
        "Without bias, the trace of an interpolator is within constants of ‖W₁‖² + d‖W₂‖².",
        "C₁ ≤ ratio ≤ C₂ for the data's own constants",
        "lemma_3_1",
    ),
    _claim(
        "thm3.2-sim-bn",
        "Theorem 3.2, Lemmas A.1 to A.3",
        "With simplified BatchNorm and a complete training set, nets without error approach the least trace, 8.",
        "trace → 8, no error on the whole cube",
        "theorem_3_2",
    ),
    _claim(
        "thm4.1-memorising",
        "Theorem 4.1",
        "The memorising net interpolates and has the least trace, 4√31 = 22.271.",
        "excess over the bound 0",
        "memorises",
        2,
    ),
    _claim(
        "thm4.1-depth3", "Theorem 4.1, D = 3", "… and so in three layers.", "excess over the bound 0", "memorises", 3
    ),
    _claim("thm4.1-depth5", "Theorem 4.1, D = 5", "… and in five.", "excess over the bound 0", "memorises", 5),
    _claim(
        "thm4.1-labels",
        "Theorem 4.1",
        "… for extreme points and labels of any kind.",
        "excess over the bound 0",
        "memorises_any_labels",
    ),
    _claim(
        "lemma4.1-trace",
        "Lemma 4.1",
        "At an interpolator tr ∇²L = (2/n) Σ ‖∇f(xᵢ)‖².",
        "equal to the dense Hessian's",
        "lemma_4_1",
    ),
    _claim(
        "prop4.1-error",
        "Proposition 4.1",
        "The memorising net errs on a share 1 − n/2^d of the hypercube.",
        "error = 1 − n/2^d",
        "cube_error",
        "bias",
        100,
    ),
    _claim(
        "prop4.2-generalising",
        "Proposition 4.2, Eq. 5 corrected",
        "Another flattest net makes no error at all.",
        "error 0 at the least trace",
        "generalises",
        "bias",
    ),
    _claim(
        "thm5.1-memorising",
        "Theorem 5.1",
        "With simplified LayerNorm a memorising net has the least trace.",
        "trace = 2",
        "theorem_5_1",
    ),
    _claim(
        "prop5.1-error",
        "Proposition 5.1",
        "… and errs on a share 1 − n/2^d of the hypercube.",
        "error = 1 − n/2^d",
        "cube_error",
        "sim-ln",
        77,
    ),
    _claim(
        "prop5.2-generalising",
        "Proposition 5.2",
        "… while another one of the least trace makes no error.",
        "error 0 at the least trace",
        "generalises",
        "sim-ln",
    ),
    _claim(
        "lemmaA.12-bound",
        "Lemma A.12",
        "No interpolating 2-MLP-Sim-LN is below (2/n) Σ min(1, (2/ε)‖x′ᵢ‖|yᵢ|).",
        "ratio ≥ 1",
        "lemma_a12",
    ),
    _claim(
        "propA.1-junta",
        "Proposition A.1",
        "A label of a few coordinates has a flattest net that makes no error.",
        "error 0 at the least trace (3-parity, d = 14)",
        "proposition_a1",
    ),
    _claim(
        "propA.2-circle",
        "Proposition A.2, at width 3n",
        "On the circle a flattest net has an error of the square of the largest arc.",
        "exponent ≥ 2 (up to 0.1) at the least trace",
        "proposition_a2",
    ),
    _claim(
        "thmA.2-logistic",
        "Theorem A.2, Lemma A.13 corrected",
        "With the logistic loss the flattest nets are the same, for the labels γ_p y.",
        "trace = bound",
        "theorem_a2",
    ),
    _claim(
        "lemmaA.24-rademacher",
        "Lemma A.24",
        "The Rademacher complexity of nets of bounded path norm is at most 2CB/√n.",
        "ratio ≤ 1",
        "lemma_a24",
    ),
    _claim(
        "lemmaA.25-linear", "Lemma A.25", "That of unit linear maps is at most √(Σ‖xᵢ‖²)/n.", "ratio ≤ 1", "lemma_a25"
    ),
    _claim("lemmaA.26", "Lemma A.26", "|relu(x)² − relu(y)²| ≤ (|x| + |y|)|x − y|.", "ratio ≤ 1", "lemma_a26"),
    _claim(
        "lemmaA.27",
        "Lemma A.27",
        "|Σ ± relu|² ≤ Σ relu² where a + d = b + c, with equality as stated.",
        "ratio ≤ 1",
        "lemma_a27",
    ),
)
