"""2-MLP-Sim-BN that computes xor and is as flat as one likes to the infimum (Theorem 3.2, Lemmas A.1 and A.3)."""

import numpy as np

from steppe import check
from steppe.constructions._examples import Params


def sim_bn_xor(d: int, *, scale: float = 1e3, width: int = 4) -> Params:
    """W₁ = s(±1, ±1, 0, …), b₁ = −s, |γ| = |W₂| = 1/√2, sign(W₂) = that of x₁x₂ (proof of Lemma A.1, signs mended).

    γ has one entry a neuron, as in the proofs; the definition in section 2 prints a scalar. On a complete training
    set {−1, 1}² × S it interpolates, and tr ∇²L = 8 + 2V/s² at width 4, V = E‖σ − E σ‖² for σ uniform on S: the
    infimum 8 is approached as the scale s grows. A larger width splits the four neurons, k copies with |γ| and |W₂|
    divided by √k; silent neurons, as the paper pads with, would be normalised 0/0.

    >>> params = sim_bn_xor(2, scale=1.0)
    >>> params["W1"].tolist()[1], params["b1"].tolist()[1], params["W2"].round(6).tolist()[1]
    ([1.0, -1.0], -1.0, -0.707107)
    """
    d = check.integer("d", d, minimum=2, remedy="The label x₁x₂ needs two coordinates.")
    width = check.integer("width", width, minimum=4, remedy="Each corner (±1, ±1) has its neuron.")
    scale = check.number("scale", scale, above=0.0)
    corner = np.arange(width) % 4
    signs = np.array([(1, 1), (1, -1), (-1, 1), (-1, -1)], dtype=float)[corner]
    share = np.sqrt(0.5 / np.bincount(corner)[corner])
    W1 = np.zeros((width, d))
    W1[:, :2] = scale * signs
    return {"W1": W1, "b1": np.full(width, -scale), "gamma": share, "W2": signs.prod(axis=1) * share}
