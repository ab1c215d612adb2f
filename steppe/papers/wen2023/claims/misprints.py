"""Statements of wen2023 that are wrong as printed, each beside its correction."""

from steppe.experiments._paper import Claim
from steppe.papers.wen2023.claims.checks import computed


def _pair(
    id: str, source: str, statement: str, as_printed: str, corrected: str, name: str, module: str = "misprint_checks"
) -> tuple[Claim, Claim]:
    return (
        Claim(f"{id}-printed", source, statement, as_printed, computed(module, name, True), misprint=True),
        Claim(f"{id}-corrected", f"{source}, corrected", statement, corrected, computed(module, name, False)),
    )


MISPRINTS = (
    *_pair(
        "eq5",
        "Eq. 5",
        "The four-neuron net of Proposition 4.2 attains the bound (d = 30).",
        "trace = 4√31 with r = (d² + 1)^¼",
        "trace = 4√31 with r = (d + 1)^¼",
        "eq5",
    ),
    *_pair(
        "lemmaA.13",
        "Lemma A.13",
        "The logistic trace is that of ½‖·‖² times a factor of p (p = 0.2).",
        "1/(p(1 − p))",
        "p(1 − p)",
        "a13",
    ),
    *_pair(
        "defA.2",
        "Definition A.2",
        "The smoothed logistic loss is minimal at γ_p for the label 1 (p = 0.2).",
        "with p as printed",
        "with p and 1 − p exchanged",
        "definition_a2",
    ),
    *_pair(
        "lemmaA.3",
        "Lemma A.3",
        "The bound by ‖W₂‖² + ‖γ‖² is the infimum of the trace of Sim-BN.",
        "‖W₂‖² + ‖γ‖²",
        "2(‖W₂‖² + ‖γ‖²)",
        "a3",
    ),
    *_pair(
        "lemmaA.1-signs",
        "Proof of Lemma A.1",
        "The net of the proof computes x₁x₂.",
        "W₂ = ½ for all neurons",
        "W₂ with the signs (−1)^{i+j}",
        "a1",
    ),
    *_pair(
        "zero-one",
        "Section 2",
        "The zero-one loss of a net that is always right is 0.",
        "Pr(y f > 0)",
        "Pr(y f ≤ 0)",
        "zero_one",
    ),
    *_pair(
        "thm4.1-zero-labels",
        "Proof of Theorem 4.1",
        "The memorising net attains the bound where some labels are 0.",
        "r = u = 1 for yᵢ = 0",
        "a silent neuron for yᵢ = 0",
        "zero_labels",
    ),
    *_pair(
        "thm4.1-kink",
        "Proof of Theorem 4.1, D = 3",
        "The loss is twice differentiable at the memorising net, with trace the bound.",
        "W₂ diagonal: on a kink",
        "W₂ with negative entries off the diagonal",
        "kink",
    ),
    *_pair(
        "thm5.1-switch",
        "Proof of Theorem 5.1",
        "The memorising Sim-LN net attains the bound for any ε and labels.",
        "changes over at ‖x′‖|y| = ε",
        "changes over at ε/2, silent for yᵢ = 0",
        "theorem_5_1",
    ),
    *_pair("eq16", "Eq. 16", "The net of Proposition A.1 interpolates.", "with vⱼ in W₁", "with wⱼ in W₁", "eq16"),
    *_pair("eq17", "Eq. 17", "The net of Proposition A.2 interpolates.", "width n, as printed", "width 3n", "eq17"),
    *_pair(
        "lemmaA.19-moment",
        "Proof of Lemma A.19",
        "E‖x‖⁴ is at most the stated bound.",
        "(e^{σ²/2} − 3/2)(d + 2)(d + 4)/3",
        "8 d(d + 2)(e^{σ²/2} − 3/2)",
        "a19",
    ),
    *_pair(
        "lemmaA.19-probability",
        "Lemma A.19",
        "The lower bound of Pr(‖x‖² > d/2) is a probability.",
        "3d²/(4(d + 2)(d + 4)(e^{σ²/2} − 3/2))",
        "d/(32(d + 2)(e^{σ²/2} − 3/2))",
        "a19_probability",
    ),
    *_pair(
        "prop4.1-unseen",
        "MATH.md, section 1",
        "The memorising net errs on 1 − n/2^d of …",
        "the unseen points",
        "the whole hypercube",
        "unseen",
    ),
    *_pair(
        "eq5-index",
        "Eq. 5, index",
        "The four-neuron net of Proposition 4.2 interpolates.",
        "W₂[2i + j] = (−1)^{i+j}/r",
        "W₂[2i + j + 1] = (−1)^{i+j}/r",
        "eq5_index",
        "proof_checks",
    ),
    *_pair(
        "prop4.2-width",
        "Proposition 4.2, width",
        "A net of the stated width makes no error, however few the samples.",
        "width n, also for n = 1",
        "width max(n, 4)",
        "width",
        "proof_checks",
    ),
    *_pair(
        "thm3.2-silent",
        "Theorem 3.2, Lemmas A.1 and A.2",
        "At the infimum of the trace of Sim-BN, ‖W₁ⱼ[3:]‖ = 0 for …",
        "every neuron",
        "every neuron with γⱼW₂ⱼ ≠ 0",
        "silent_neuron",
        "proof_checks",
    ),
    *_pair(
        "lemmaA.4-norms",
        "Proof of Lemma A.4",
        "max ‖xᵢ‖² grows like a power of d, but for logarithms.",
        "√d",
        "d",
        "largest_norm",
        "proof_checks",
    ),
    *_pair(
        "lemmaA.25-step",
        "Proof of Lemma A.25",
        "E‖Σ σᵢxᵢ‖ against √(Σ‖xᵢ‖²).",
        "equal",
        "at most",
        "linear_step",
        "proof_checks",
    ),
    *_pair(
        "fig2a-restoring",
        "Table 2, figure 2a",
        "At the flattest net of Sim-BN 1-SAM raises an output that is just below its label.",
        "by more than 0.01 of what it lowers one just above, ρ = 1",
        "by more than 0.01 of what it lowers one just above, ρ of our runs",
        "restoring",
        "proof_checks",
    ),
)
