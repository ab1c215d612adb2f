"""The audit of a small ReLU network: each number by a second route, the dense Hessian or the definition itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dynamics import dense_hessian, gauss_newton
from scipy.stats import t as student

import steppe
from steppe import losses
from steppe.dynamics import GD
from steppe.networks import OneHidden

LR = 0.1


def relu_net(key=0):
    rng = np.random.default_rng(key)
    params = OneHidden().init(3, 4, rng, np.float64, outputs=2)
    return steppe.Problem(OneHidden(), params, rng.normal(size=(16, 3)), rng.normal(size=(16, 2)), losses.half_mse)


@pytest.fixture(scope="module")
def problem():
    return relu_net()


@pytest.fixture(scope="module")
def found(problem):
    return steppe.audit(problem, optimizer=GD(LR))


@pytest.fixture(scope="module")
def dense(problem):
    """H, its Gauss-Newton part and g, by autodiff of the whole loss and of all outputs."""
    return (
        dense_hessian(problem, problem.w0),
        gauss_newton(problem, problem.w0),
        np.asarray(jax.jit(jax.grad(problem.loss))(problem.w0)),
    )


def holds(estimate, truth):
    """The truth is in the interval, up to rounding."""
    slack = 1e-9 * max(1.0, abs(truth))
    return estimate.lower - slack <= truth <= estimate.upper + slack


def test_loss_gradient_and_spectrum(problem, found, dense):
    H, G, g = dense
    eigenvalues = np.linalg.eigvalsh(H)
    truths = {
        "loss": float(problem.loss(problem.w0)),
        "gradient_norm": np.linalg.norm(g),
        "sharpness": eigenvalues[-1],
        "smallest_eigenvalue": eigenvalues[0],
        "edge": LR / 2 * eigenvalues[-1],
        "trace": np.trace(H),
        "trace_gauss_newton": np.trace(G),
        "trace_residual": np.trace(H - G),
        "sharpness_gauss_newton": np.linalg.eigvalsh(G)[-1],
        "norm_residual": np.abs(np.linalg.eigvalsh(H - G)).max(),
        "fisher_trace": np.trace(G),  # of half_mse
        "norm_l2": np.linalg.norm(problem.w0),
        "norm_l1": np.abs(problem.w0).sum(),
    }
    assert [name for name, truth in truths.items() if not holds(found.estimates[name], truth)] == []
    for name in ("sharpness", "sharpness_gauss_newton"):  # relative to the accuracy that was asked for
        assert found.estimates[name].value == pytest.approx(truths[name], rel=0.01)


def test_blocks(problem, found, dense):
    H = dense[0]
    places = {"W1": slice(0, 12), "W2": slice(12, 20), "b1": slice(20, 24), "b2": slice(24, 26)}
    assert {b.name: b.size for b in found.blocks} == {name: s.stop - s.start for name, s in places.items()}
    for block in found.blocks:
        part = H[places[block.name], places[block.name]]
        assert holds(block.trace, np.trace(part))
        assert holds(block.sharpness, np.linalg.eigvalsh(part)[-1])
        assert block.norm == pytest.approx(np.linalg.norm(problem.w0[places[block.name]]))


def test_critical_sharpness_is_where_the_loss_along_the_gradient_comes_back(problem, found, dense):
    critical, g = found.estimates["critical_sharpness"], dense[2]
    below, above = (problem.loss(problem.w0 - 2 / s * g) for s in (critical.upper, critical.lower))
    here = problem.loss(problem.w0)
    assert below <= here < above
    assert critical.upper / critical.lower < 1.0101


@pytest.mark.parametrize("bits", [8, 4])
def test_rounded_weights(problem, found, dense, bits):
    H, _, g = dense
    params, rounded = problem.unravel(problem.w0), {}
    for name, array in params.items():
        step = float(jnp.abs(array).max()) / (2 ** (bits - 1) - 1)
        rounded[name] = jnp.round(array / step) * step
    w = problem.vector(rounded)
    move = np.asarray(w - problem.w0)
    rise = float(problem.loss(w) - problem.loss(problem.w0))
    assert found.estimates[f"rise_{bits}_bits"].value == pytest.approx(rise, abs=1e-12)
    model = g @ move + 0.5 * move @ H @ move
    assert found.estimates[f"rise_{bits}_bits_predicted"].value == pytest.approx(model, rel=1e-6)


def test_random_steps_and_adaptive_sharpness(problem, found):
    """Against means over fresh draws, within four of their standard errors."""
    sigma = 0.01 * float(jnp.linalg.norm(problem.w0)) / problem.w0.size**0.5
    draws = jax.random.normal(jax.random.key(1), (4000, problem.w0.size))
    for name, scale in (("rise_random", sigma), ("adaptive_sharpness", 0.1 * jnp.abs(problem.w0))):
        steps = draws * jnp.broadcast_to(scale, draws.shape[1:])[None]
        loss = jax.jit(jax.vmap(lambda step: problem.loss(problem.w0 + step)))
        pairs = 0.5 * (loss(steps) + loss(-steps))
        mean, error = float(pairs.mean() - problem.loss(problem.w0)), float(pairs.std()) / 4000**0.5
        e = found.estimates[name]
        assert e.lower - 4 * error <= mean <= e.upper + 4 * error


def test_invariant_measures_survive_a_rescaling(problem, found):
    least = found.estimates["invariant_trace"]
    assert least.value <= found.estimates["trace_gauss_newton"].value
    params = dict(problem.unravel(problem.w0))
    params |= {"W1": 5.0 * params["W1"], "b1": 5.0 * params["b1"], "W2": params["W2"] / 5.0}
    assert steppe.measures.invariant_trace(problem, params).value == pytest.approx(least.value, rel=1e-6)


def test_the_error_of_the_sample(problem, found, dense):
    """Sixteen examples are sixteen groups of one: the spread of ℓᵢ, ∇ℓᵢ and vᵀ∇²ℓᵢv, to first order that of λ_max."""
    v = np.linalg.eigh(dense[0])[1][:, -1]

    def of_example(f):
        each = jax.jit(jax.vmap(lambda i: f(lambda w: problem.example_loss(w, i))(problem.w0)))
        return np.asarray(each(jnp.arange(16)))

    def half(values):
        return student.ppf(0.995, 15) * np.std(values, ddof=1) / 16**0.5

    data = {name: errors["data"] for name, errors in found.errors.items()}
    assert data["loss"] == pytest.approx(half(of_example(lambda loss: loss)), rel=1e-9)
    # Lanczos stops at 1% of λ_max, with an error of v of the order of its root.
    assert data["sharpness"] == pytest.approx(half(of_example(jax.hessian) @ v @ v), rel=0.1)
    length = np.sqrt(of_example(jax.grad).var(axis=0, ddof=1).sum() / 16)
    assert data["gradient_norm"] == pytest.approx(length, rel=1e-9)
    assert found.errors["sharpness"]["probes"] == 0.0
    assert found.errors["trace"]["solver"] == 0.0


def test_products_are_checked(found):
    checks = {check.name: check.verdict for check in found.checks}
    assert [v for name, v in checks.items() if name.startswith("products")] == ["holds"] * 3
    assert found.trusted


def test_density_has_the_trace(problem, found, dense):
    curve = found.curves["density"]
    mean = np.trapezoid(np.multiply(curve["grid"], curve["density"]), curve["grid"])
    # Four probes in 26 dimensions: zᵀHz/p has a standard deviation of ‖H‖_F √2/p each.
    assert abs(mean - np.trace(dense[0]) / 26) < 4 * 2**0.5 * np.linalg.norm(dense[0]) / 26 / 2


def test_what_does_not_apply_says_why(problem):
    """A network that is not homogeneous, with a rule for its own derivative that has no second one."""

    @jax.custom_vjp
    def odd(x):
        return jnp.tanh(x)

    # Derivatives stop at a callback.
    odd.defvjp(lambda x: (jnp.tanh(x), x), lambda x, ct: (ct * jax.pure_callback(lambda x: 1 - np.tanh(x) ** 2, x, x),))
    x = np.random.default_rng(0).normal(size=(3, 2))
    net = steppe.Problem(lambda w, x: odd(x @ w), jnp.array([0.3, -0.2]), x, np.ones(3), losses.half_mse)
    found = steppe.audit(net)
    assert {"loss", "gradient_norm", "critical_sharpness", "norm_l2", "rise_8_bits"} <= set(found.estimates)
    assert "sharpness" in found.missing
    assert all(found.missing.values())
    assert "no optimiser was given" in found.missing["edge"]
    assert "Second derivatives are not available" in found.reading


def test_a_budget_ends_the_work(problem):
    found = steppe.audit(problem, seconds=1e-6)
    assert not found.estimates
    assert all("budget" in why for why in found.missing.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "problem must be"),
        ({"data": 1}, "data and loss must be None"),
        ({"optimizer": 3}, "optimizer must be"),
        ({"accuracy": 0.1}, "accuracy must be"),
        ({"seconds": 0}, "seconds must be"),
    ],
)
def test_wrong_use(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        steppe.audit(**({"model": problem} | arguments))


def test_the_function_has_its_name_under_every_import_order():
    import steppe.auditing
    import steppe.cli._audit

    assert callable(steppe.audit)
    assert steppe.audit is steppe.auditing.audit
