"""Laws of every kernel: the same steps as the generic path, whatever the network, the loss and the batch."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.kernel_family import (
    DYNAMICS,
    FAMILY,
    KEY,
    LOGISTIC,
    LOSSES,
    NOISY,
    PROJECTED,
    advance,
    build,
    orders_of,
    problem,
)
from oracles import kernel_oracle as oracle

import steppe
from steppe import kernels, losses, until
from steppe.dynamics import GD, SAM, LabelNoise, Projected
from steppe.dynamics._base import Generic
from steppe.networks import MLP, BatchNorm, LayerNorm, SimBN, SimLN, TwoLayer
from steppe.outcome import Halt

ARCHITECTURES = ("two-layer", "sim-ln", "three-layer", "sim-bn")


def moves(name, p):
    """The dynamics that this problem may have; noise, the same for all networks, with one of each architecture."""
    names = {"W1", "b1"} if p.predict.bias else {"W1"}
    noisy = name in (*ARCHITECTURES, "sim-bn-signs") and p.loss_function.name != "logistic"
    projected = [Projected(move.dynamics, names, move.norm) for move in PROJECTED.values()]
    return [*DYNAMICS.values(), *projected, *(NOISY.values() if noisy else ())]


@pytest.mark.parametrize("name", FAMILY)
def test_equals_the_formulas_written_out(name):
    """Every network, loss and dynamics; 12 steps reach the ragged last batch and the next epoch."""
    for loss in LOSSES.values():
        p = FAMILY[name](loss=loss)
        for move in moves(name, p):
            fast, done, halt = advance(build(p, move), p, move, 12)
            assert (done, halt) == (12, Halt.NOT)
            slow = oracle.train(p, move, orders_of(p, move), 12, KEY)
            # 12 steps, each with sums of at most 130 numbers around 1: some 1,000 units in the last place.
            np.testing.assert_allclose(fast, slow, atol=1000 * np.finfo(float).eps, err_msg=f"{loss.name} {move}")


# Every architecture, loss and dynamics. The generic path compiles for each of them anew: it runs (True) for every
# network, every kind of wrapper and the smooth activation; the other kernels go as far with the formulas written out.
LONG = [
    ("two-layer", "noisy-ragged", losses.mse, True),
    ("two-layer-softplus", "m-sam", LOGISTIC, False),
    ("sim-ln", "projected-1-sam", losses.mse, True),
    ("sim-ln-softplus", "1-sam", losses.logistic(), False),
    ("three-layer", "1-sam", losses.half_mse, True),
    ("three-layer-softplus", "sgd-ragged", losses.logistic(), True),
    ("sim-bn", "1-sam", LOGISTIC, True),
    ("sim-bn-softplus", "gd", losses.half_mse, False),
    ("sim-bn-signs", "1-sam", losses.mse, False),
]


@pytest.mark.parametrize(("name", "dynamics", "loss", "generic"), LONG)
def test_equals_the_generic_path_over_many_steps(name, dynamics, loss, generic):
    p, move = FAMILY[name](loss=loss), (DYNAMICS | NOISY | PROJECTED)[dynamics]
    fast, *ends = advance(build(p, move), p, move, 500)
    assert ends == [500, Halt.NOT]
    if generic:
        slow, *ends = advance(Generic(p, move, KEY), p, move, 500)
        assert ends == [500, Halt.NOT]
    else:
        slow = oracle.train(p, move, orders_of(p, move), 500, KEY)
    # A residual of rounding size would decide the direction of a SAM step.
    assert np.abs(oracle.residuals(p, slow)).max() > 1e-4
    # Each step adds some 1,000 units in the last place, and nothing magnifies them away from interpolation.
    np.testing.assert_allclose(fast, slow, atol=500 * 1000 * np.finfo(float).eps)


@pytest.mark.parametrize("name", FAMILY)
def test_cutting_a_run_into_calls_changes_no_bit(name):
    p = FAMILY[name]()
    for move in moves(name, p):
        path = build(p, move)
        whole = advance(path, p, move, 20)[0]
        for cut in (1, 7):
            np.testing.assert_array_equal(advance(path, p, move, 20, cut=cut)[0], whole)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_stops_are_those_of_the_generic_path(name):
    p = FAMILY[name]()
    loss = jax.jit(p.loss)
    goal = 0.7 * float(loss(p.w0))
    for move, stop, outcome in (
        (GD(0.03), until.loss(goal) | until.steps(10_000), "reached"),
        # By decay: at a large rate alone rounding decides whether the neurons of Sim-LN die or diverge.
        (GD(0.03, weight_decay=130.0), until.steps(10_000), "diverged"),
        (GD(0.0), until.loss(goal), "stalled"),
    ):
        fast, slow = (steppe.run(p, move, stop=stop, use_kernels=k) for k in (True, False))
        assert fast.outcome == slow.outcome == outcome
        if outcome != "diverged":  # far beyond 2/λ a run is chaotic, and rounding decides its last step
            assert (fast.steps, fast.gradients) == (slow.steps, slow.gradients)
        assert np.isfinite(float(loss(fast.w))) == (outcome != "diverged")


@pytest.mark.parametrize("name", FAMILY)
def test_a_loss_that_is_not_finite_halts_before_the_step(name):
    p = FAMILY[name]()
    for bad in (np.inf, np.nan):
        w = np.append(np.full(p.w0.size - 1, 0.5), bad)
        with np.errstate(invalid="ignore"):
            assert not np.isfinite(oracle.residuals(p, w)).all()
        for move in DYNAMICS.values():
            after, done, halt = advance(build(p, move), p, move, 3, w=w)
            assert (done, halt) == (0, Halt.DIVERGED)
            np.testing.assert_array_equal(after, w)


@pytest.mark.parametrize("name", FAMILY)
def test_position_of_start_is_the_same_vector_and_advance_leaves_its_argument_alone(name):
    p, move = FAMILY[name](), DYNAMICS["1-sam"]
    path = build(p, move)
    state = path.start(p.w0)
    path.advance(state, orders_of(p, move), first=0, offset=0, count=5, target=-1.0)
    np.testing.assert_array_equal(path.position(state), p.w0)


@pytest.mark.parametrize("name", [*ARCHITECTURES, "sim-bn-signs"])
def test_one_kernel_serves_several_threads(name):
    p = FAMILY[name]()
    for move in (DYNAMICS["1-sam"], DYNAMICS["m-sam"]):
        path = build(p, move)
        alone = advance(path, p, move, 300)[0]
        with ThreadPoolExecutor(3) as pool:
            for w, _, _ in pool.map(lambda _, path=path, move=move: advance(path, p, move, 300), range(3)):
                np.testing.assert_array_equal(w, alone)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_run_takes_the_kernel_with_its_key(name):
    p, move = FAMILY[name](), NOISY["noisy-1-sam"]
    r = steppe.run(p, move, stop=until.epochs(2), key=KEY)
    path = build(p, move)
    orders = steppe.kernels.path.block(KEY, len(p), 0)
    state, _, _ = path.advance(path.start(p.w0), orders, first=0, offset=0, count=2 * len(p), target=-1.0)
    np.testing.assert_array_equal(r.w, path.position(state))


@pytest.mark.parametrize("network", [TwoLayer(), SimLN(0.3), MLP(3)])
def test_a_single_example(network):
    """One batch is then all there is, and the path is that of full batches."""
    p = problem(lambda x: network, n=1, d=2, width=3)
    for move in (SAM(0.01, 0.1), GD(0.01, batch_size=4)):
        np.testing.assert_allclose(
            advance(build(p, move), p, move, 12)[0],
            oracle.train(p, move, None, 12, KEY),
            atol=1000 * np.finfo(float).eps,
        )


def test_not_chosen_elsewhere():
    p = FAMILY["sim-bn"]()

    def build(problem, dynamics, key=None):
        return kernels.build(problem, dynamics.recipe(), key)

    assert build(FAMILY["three-layer"](), LabelNoise(GD(0.1), 0.1)) is None  # no key, no noise
    for unknown in (lambda x: MLP(4), BatchNorm, lambda x: LayerNorm(), lambda x: SimBN(2 * x)):
        assert build(problem(unknown), GD(0.1), 0) is None  # the last has statistics over other inputs
    assert build(p, Projected(GD(0.1), {"W2"}, 1.0), 0) is None
    assert build(p, Projected(Projected(GD(0.1), {"W1", "b1"}, 1.0), {"W1", "b1"}, 2.0), 0) is None
    assert build(p, GD(jnp.array([0.1, 0.2])), 0) is None
    other = steppe.Problem(lambda a, x: p.predict(a, x), p.unravel(p.w0), p.x, p.y, p.loss_function)
    assert build(other, GD(0.1), 0) is None


def test_a_silent_neuron_of_sim_bn_stays_silent():
    p = problem(SimBN, width=6)
    params = p.unravel(p.w0)
    p = steppe.Problem(p.predict, params | {"b1": params["b1"].at[2].set(-100.0)}, p.x, p.y, p.loss_function)
    for move in (DYNAMICS["1-sam"], DYNAMICS["m-sam"]):
        fast = advance(build(p, move), p, move, 20)[0]
        slow = oracle.train(p, move, orders_of(p, move), 20, KEY)
        np.testing.assert_allclose(fast, slow, atol=2000 * np.finfo(float).eps)


@pytest.mark.parametrize("network", [lambda x: TwoLayer(), lambda x: MLP(3), SimBN])
def test_a_fitted_example_gets_no_perturbation(network):
    """All labels are what the network says: where rounding leaves no residual nothing moves, else by lr·2ρ‖∇f‖²."""
    p = problem(network)
    p = steppe.Problem(p.predict, p.unravel(p.w0), p.x, jax.jit(p.predictions)(p.w0), losses.mse)
    w = advance(build(p, SAM(0.01, 0.1)), p, SAM(0.01, 0.1), 30)[0]
    assert np.abs(w - p.w0).max() < 0.1
