import numpy as np
import pytest
from cases.planted import SPECTRA, plant, spectrum

from steppe.linalg import Operator
from steppe.linalg._bounds import Christoffel
from steppe.linalg._lanczos import Krylov

EPS = np.finfo(float).eps


def block(b, p, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, b)))[0].T


def defect(A, chain):
    """‖PAP V − V H − Q B‖ and the loss of orthogonality."""
    Y = chain.against
    P = np.eye(len(A)) - Y.T @ Y
    V, Q = chain.basis.T, chain.next.T
    H, B = chain.H[: chain.size, : chain.size], chain.B[: chain.width, : chain.size]
    whole = np.hstack([Y.T, V, Q])
    gram = whole.T @ whole - np.eye(whole.shape[1])
    return np.abs(P @ A @ V - V @ H - Q @ B).max(), np.abs(gram).max()


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("b", [1, 2, 5])
@pytest.mark.parametrize("deflated", [0, 3])
def test_decomposition_holds_through_restarts(name, b, deflated):
    p = 37
    A, rng = plant(spectrum(name, p), b), np.random.default_rng(0)
    Y = block(deflated, p, 9) if deflated else None
    start = block(b, p, 1)
    if deflated:
        start = np.linalg.qr((start - (start @ Y.T) @ Y).T)[0].T
    chain = Krylov(Operator(lambda v: A @ v, p), start, capacity=12, against=Y)
    scale = max(np.linalg.norm(A, 2), 1.0)
    for _ in range(12):
        if chain.full:
            chain.restart(np.arange(chain.size - 6, chain.size))
        chain.expand(rng)
        residual, loss = defect(A, chain)
        assert residual <= 100 * EPS * np.sqrt(p) * scale
        assert loss <= 20 * EPS * np.sqrt(p)
    assert len(chain.rows) == 12 + b  # the memory asked for, whatever the number of products
    assert chain.rounding <= 1e-10 * scale


@pytest.mark.parametrize("b", [1, 2, 3, 7])
def test_block_spans_a_space_of_any_dimension(b):
    A, rng = plant(spectrum("uniform", 7), 0), np.random.default_rng(0)
    chain = Krylov(Operator(lambda v: A @ v, 7), block(b, 7), capacity=7)
    while not chain.exhausted:
        chain.expand(rng)
    np.testing.assert_allclose(chain.ritz()[0], spectrum("uniform", 7), atol=100 * EPS)


def test_a_block_finds_every_copy_and_a_fresh_direction_goes_on_after_breakdown():
    d = np.array([3.0, 3.0, 3.0, 1.0, 1.0, 0.0])
    for b in (1, 2, 3):
        chain = Krylov(Operator(lambda v: d * v, 6), block(b, 6, b), capacity=6)
        broken = 0
        while not chain.exhausted:
            chain.expand(np.random.default_rng(chain.size))
            broken += chain.broken and not chain.exhausted
        np.testing.assert_allclose(chain.ritz()[0], np.sort(d), atol=100 * EPS)
        assert (broken > 0) == (b == 1)


def polynomials(chain_factory, A, b, mu):
    """φ_j(μ) for each basis vector v_j = φ_j(A) b, by writing v_j in the power basis of a small exact problem."""
    chain = chain_factory()
    values, vectors = np.linalg.eigh(A)
    weights = vectors.T @ b
    rows = np.vstack([chain.basis, chain.next]) @ vectors
    samples = rows / weights  # φ_j(λ_i) = ⟨v_j, u_i⟩/⟨b, u_i⟩
    coefficients = np.polynomial.polynomial.polyfit(values, samples.T, len(values) - 1)
    return np.polynomial.polynomial.polyval(mu, coefficients)


@pytest.mark.parametrize("restart", [False, True])
def test_kernel_is_the_sum_of_squared_polynomials_also_after_a_restart(restart):
    p, mu = 7, 1.5
    A = plant(np.linspace(-1.0, 1.0, p), 4)
    b = block(1, p, 3)[0]

    def run():
        chain = Krylov(Operator(lambda v: A @ v, p), b[None], capacity=4)
        for _ in range(4):
            chain.expand(np.random.default_rng(0))
        if restart:
            chain.restart(np.array([2, 3]))
            chain.expand(np.random.default_rng(0))
        return chain

    chain = run()
    ours = Christoffel.of(chain).log_kernel(mu)
    theirs = np.log((polynomials(run, A, b, mu) ** 2).sum())
    # Extrapolating a polynomial of degree 6 from [−1, 1] to 1.5 amplifies rounding by less than 1e5.
    assert abs(ours - theirs) <= 1e5 * 100 * EPS
