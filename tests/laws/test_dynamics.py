"""Laws of every dynamics on every problem. Every public dynamics has a case in `CASES`, or a test fails."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases.problems import FAMILY, two_layer
from oracles import kernel_oracle as oracle
from oracles.dynamics import numpy_sam

import steppe
from steppe import losses, until, when
from steppe.dynamics import (
    GD,
    SAM,
    Decayed,
    Dynamics,
    Flow,
    HeavyBall,
    LabelNoise,
    Optax,
    Projected,
    run_many,
)
from steppe.kernels.path import block

DYNAMICS = {
    "gd": GD(0.05, weight_decay=0.1),
    "sgd": GD(0.05, batch_size=4),
    "1-sam": SAM(0.02, 0.1),
    "m-sam": SAM(0.02, 0.1, 3, weight_decay=0.05),
    "sam": SAM(0.02, 0.1, None),
}


@cache
def small(bias=True):
    """The two-layer net of most laws: 10 examples, so that the last batch is ragged. Of one size, it compiles once."""
    return two_layer(bias=bias, n=10)


ADAM = optax.adam(0.01)
# One dynamics of each class for every batch size, None for full batches. A flow has no batches.
CASES = {
    GD: lambda size: GD(0.05, weight_decay=0.1, batch_size=size),
    HeavyBall: lambda size: HeavyBall(0.02, 0.5, size),
    SAM: lambda size: SAM(0.02, 0.1, size),
    Optax: lambda size: Optax(ADAM, size),
    Decayed: lambda size: Decayed(GD(0.05, batch_size=size), {"W1"}, 0.01),
    Projected: lambda size: Projected(GD(0.05, batch_size=size), {"W1", "b1"}, 3.0),
    LabelNoise: lambda size: LabelNoise(GD(0.05, batch_size=size), 0.1),
    Flow: lambda size: Flow(1e-4),
}
IN_STEPS = [kind for kind in CASES if not kind.in_time]


def subclasses(kind):
    for child in kind.__subclasses__():
        yield child
        yield from subclasses(child)


def test_every_dynamics_has_a_case():
    public = {value for value in vars(steppe.dynamics).values() if isinstance(value, type)}
    found = {kind for kind in subclasses(Dynamics) if kind.__module__.startswith("steppe.")}
    assert found <= public
    assert found == set(CASES)


def stopped(move):
    return until.time(1.0) if move.in_time else until.steps(25)


@pytest.mark.parametrize("kind", CASES)
def test_the_same_key_is_the_same_run(kind):
    p, move = small(), CASES[kind](3)
    runs = [steppe.run(p, move, stop=stopped(move), key=key, use_kernels=False) for key in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].w, runs[1].w)
    assert np.array_equal(runs[0].w, runs[2].w) == move.in_time  # the key decides the batches; a flow has none


@pytest.mark.parametrize("kind", IN_STEPS)
def test_a_compiled_step_is_an_eager_step(kind):
    """Compiled, sums may be rounded in another order."""
    p, move = small(), CASES[kind](3)
    state, index = move.start(p, p.w0), jnp.array([4, 0, 7])
    eager, compiled = (step(p, state, index, key=jax.random.key(1)) for step in (move.step, eqx.filter_jit(move.step)))
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", IN_STEPS)
def test_many_runs_are_a_loop_of_runs(kind):
    p, move = small(), CASES[kind](None)
    starts = np.stack([p.w0, 0.5 * p.w0])
    many = run_many(p, move, starts, stop=until.steps(15), key=4)
    for k, start in enumerate(starts):
        one = steppe.run(p, move, start, stop=until.steps(15), key=4, use_kernels=False)
        np.testing.assert_allclose(many.w[k], one.w, rtol=1e-10, atol=1e-13)
        assert (many.outcome[k], many.steps[k]) == (one.outcome, one.steps)


class Killing:
    """A checkpoint that ends the run at its second save."""

    def __init__(self):
        self.saves, self.kept = 0, None

    def load(self):
        return self.kept

    def due(self):
        return True

    def save(self, arrays):
        self.saves += 1
        self.kept = {name: np.array(array) for name, array in arrays.items()}
        if self.saves == 2:
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", CASES)
def test_a_killed_run_resumes_to_the_bit(kind):
    p, move = small(), CASES[kind](3)

    def go(checkpoint=None):
        chosen = when.times([0.1, 0.5]) if move.in_time else when.every(steps=4)
        return steppe.run(p, move, stop=stopped(move), when=chosen, checkpoint=checkpoint, key=1, use_kernels=False)

    whole, checkpoint = go(), Killing()
    with pytest.raises(KeyboardInterrupt):
        go(checkpoint)
    again = go(checkpoint)
    np.testing.assert_array_equal(whole.w, again.w)
    assert (whole.steps, whole.gradients, whole.outcome) == (again.steps, again.gradients, again.outcome)
    for name, column in whole.records.items():
        np.testing.assert_array_equal(column, again.records[name])


@pytest.mark.parametrize("kind", IN_STEPS)
def test_a_batch_of_all_examples_is_a_full_batch(kind):
    p = small()
    ends = [steppe.run(p, CASES[kind](size), stop=until.steps(5), use_kernels=False).w for size in (len(p), None)]
    np.testing.assert_array_equal(*ends)


def test_the_flow_is_the_limit_of_gradient_descent():
    """The distance of gradient descent from the flow is of first order in the rate."""
    p = FAMILY["tanh-half-mse"]()
    flow = np.asarray(steppe.run(p, Flow(1e-6), stop=until.time(1.0)).w)
    gaps = [np.linalg.norm(steppe.run(p, GD(1 / n), stop=until.steps(n)).w - flow) for n in (200, 800)]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.05)


# A loop sees a problem through the loss of all examples and that of a batch: every problem with a dynamics of each
# kind, every dynamics on several problems. Networks whose examples see each other have no example losses of their own.
PAIRS = [
    ("two-layer", "gd"), ("two-layer", "m-sam"), ("two-layer-no-bias", "sam"), ("two-layer-no-bias", "1-sam"),
    ("two-layer-logistic", "gd"), ("two-layer-logistic", "sgd"), ("least-squares", "sam"), ("least-squares", "m-sam"),
    ("tanh-half-mse", "sam"), ("tanh-half-mse", "1-sam"), ("tanh-mse", "gd"), ("tanh-mse", "sgd"),
    ("tanh-cross-entropy", "sam"), ("tanh-cross-entropy", "m-sam"), ("tanh-logistic", "gd"), ("tanh-logistic", "1-sam"),
    ("least-squares", "adam"), ("tanh-half-mse", "heavy-ball"),
]  # fmt: skip
# And two that remember more than w.
MOVES = DYNAMICS | {"adam": CASES[Optax](3), "heavy-ball": CASES[HeavyBall](None)}
PROBLEMS = FAMILY | {"two-layer": small, "two-layer-no-bias": lambda: small(bias=False)}


def test_every_problem_has_a_dynamics_of_batches_and_one_of_all_examples():
    kinds = {(problem, MOVES[dynamics].batch_size is None) for problem, dynamics in PAIRS}
    assert kinds == {(problem, full) for problem in set(FAMILY) - {"batch-statistics"} for full in (True, False)}
    assert {dynamics for _, dynamics in PAIRS} == set(MOVES)


@pytest.mark.parametrize(("problem", "dynamics"), PAIRS)
def test_the_loop_is_its_steps_and_the_same_key_the_same_run(problem, dynamics):
    """The compiled loop against single steps over the same batches, and against itself."""
    p, move = PROBLEMS[problem](), MOVES[dynamics]
    # One by one the operations of a step compile for as long as ten steps: on one net, the rest is compiled as a whole.
    step = move.step if problem == "two-layer" else eqx.filter_jit(move.step)
    n, size = len(p), min(move.batch_size or len(p), len(p))
    state = move.start(p, p.w0)
    for row in block(0, n, 0)[:2]:
        for first in range(0, n, size):
            index = None if size == n else jnp.asarray(row[first : first + size])
            state, _ = step(p, state, index, key=jax.random.key(0))
    r, again = (steppe.run(p, move, stop=until.epochs(2), use_kernels=False) for _ in range(2))
    np.testing.assert_allclose(r.w, move.position(state), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(r.w, again.w)
    for name, column in r.records.items():
        np.testing.assert_array_equal(column, again.records[name])


@cache
def single(bias=True):
    """Small, since in 32 bits a pre-activation within rounding of 0 may fall on either side of the kink."""
    return two_layer(bias=bias, d=11, n=10, width=70, dtype=np.float32)


@pytest.mark.parametrize(
    ("dynamics", "fast"), [(name, fast) for name in MOVES for fast in (True, False) if not fast or name in DYNAMICS]
)
def test_cutting_a_run_into_calls_changes_no_bit(dynamics, fast):
    """Nor does running it again."""
    p, move = single(), MOVES[dynamics]
    whole = steppe.run(p, move, stop=until.epochs(30), record={}, use_kernels=fast)
    for per_call in (1, 7, 300):
        cut = steppe.run(p, move, stop=until.epochs(30), when=when.every(steps=per_call), use_kernels=fast)
        np.testing.assert_array_equal(whole.w, cut.w)


# Small nets reach the floor of their loss in a few hundred steps, and there the direction of SAM is rounding.
SHAPES = [
    (1000, {"d": 30, "n": 40, "width": 130}),
    (1000, {"d": 30, "n": 40, "width": 130, "bias": False, "loss": losses.half_mse}),
    (200, {"d": 2, "n": 3, "width": 5}),
    (200, {"d": 13, "n": 10, "width": 64, "bias": False}),
    (200, {"d": 4, "n": 1, "width": 65, "loss": losses.half_mse}),
]


# The generic path compiles anew for each: every dynamics at the largest shape, every other shape with one of batches
# and one of all examples. Where it does not run, the formulas written out do, which compile nothing.
GENERIC = {(0, name) for name in DYNAMICS} | {
    (1, "1-sam"), (1, "gd"), (2, "1-sam"), (2, "sam"), (3, "sgd"), (3, "sam"), (4, "m-sam"), (4, "gd"),
}  # fmt: skip


@pytest.mark.parametrize("number", range(len(SHAPES)))
@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_kernel_equals_generic_path_in_64_bits(dynamics, number):
    """Each step adds its rounding, and nothing magnifies it away from interpolation."""
    (steps, shape), move = SHAPES[number], DYNAMICS[dynamics]
    p = two_layer(**shape)
    fast = steppe.run(p, move, stop=until.steps(steps))
    if (number, dynamics) in GENERIC:
        run = steppe.run(p, move, stop=until.steps(steps), use_kernels=False)
        assert (fast.outcome, fast.steps) == (run.outcome, run.steps)
        slow = np.asarray(run.w)
    else:
        orders = block(0, len(p), 0) if (move.batch_size or len(p)) < len(p) else None
        slow = oracle.train(p, move, orders, steps, key=0)
        assert (fast.outcome, fast.steps) == ("exhausted", steps)
    # A residual of rounding size would decide the direction of a SAM step.
    if isinstance(move, GD) or fast.records["loss"][-1] > 1e-8:
        np.testing.assert_allclose(fast.w, slow, atol=1e-10)


@pytest.mark.parametrize("dynamics", DYNAMICS)
def test_kernel_equals_generic_path_in_32_bits(dynamics):
    # 100 steps, each with rounding errors of a few units in the last place of weights below 1.
    tolerance = 100 * 4 * np.finfo(np.float32).eps
    orders = None if DYNAMICS[dynamics].batch_size is None else block(0, 10, 0)
    for p in (single(), single(bias=False)):
        fast = steppe.run(p, DYNAMICS[dynamics], stop=until.steps(100))
        np.testing.assert_allclose(fast.w, oracle.train(p, DYNAMICS[dynamics], orders, 100, key=0), atol=tolerance)
        if p.predict.bias:  # the generic path is there, of the law before
            slow = steppe.run(p, DYNAMICS[dynamics], stop=until.steps(100), use_kernels=False)
            np.testing.assert_allclose(fast.w, slow.w, atol=tolerance)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dynamics", DYNAMICS)
@pytest.mark.parametrize("fast", [True, False])
def test_both_paths_equal_the_formulas_written_out(bias, dynamics, fast):
    """A third way: gradients by hand in numpy, no fusing, no autodiff."""
    p, move = small(bias=bias), DYNAMICS[dynamics]
    size = min(move.batch_size or 10, 10)
    rows = block(0, 10, 0)[:5]
    batches = [row[k : k + size] for row in rows for k in range(0, 10, size)]
    params = p.unravel(np.asarray(p.w0))
    rho = float(move.rho) if isinstance(move, SAM) else 0.0
    expected = numpy_sam(
        params, np.asarray(p.x), np.asarray(p.y), batches,
        lr=float(move.lr), rho=rho, decay=float(move.weight_decay), scale=2.0,
    )  # fmt: skip
    r = steppe.run(p, move, stop=until.epochs(5), use_kernels=fast)
    for name, array in p.unravel(np.asarray(r.w)).items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("fast", [True, False])
def test_sam_without_radius_is_gradient_descent(fast):
    p = small()
    for size in (1, 3, None):
        a = steppe.run(p, SAM(0.05, 0.0, size), stop=until.epochs(5), use_kernels=fast)
        b = steppe.run(p, GD(0.05, batch_size=size), stop=until.epochs(5), use_kernels=fast)
        np.testing.assert_allclose(a.w, b.w, rtol=1e-12)


def test_a_vmapped_step_is_a_loop_of_steps():
    p, rates = FAMILY["tanh-half-mse"](), jnp.array([0.1, 0.01, 0.5])
    step = lambda lr: GD(lr).step(p, p.w0, None, key=jax.random.key(0))[0]  # noqa: E731
    together = jax.jit(jax.vmap(step))(rates)
    np.testing.assert_allclose(together, jnp.stack([step(lr) for lr in rates]), rtol=1e-13)


def test_every_epoch_visits_every_example_once_in_a_new_order():
    rows = block(7, 23, 2)
    assert (np.sort(rows, axis=1) == np.arange(23)).all()
    assert len(np.unique(rows[:50], axis=0)) == 50
    # Each example is equally likely to come first: χ² of the first column within four standard deviations.
    counts = np.bincount(rows[:, 0], minlength=23)
    chi2 = ((counts - len(rows) / 23) ** 2 / (len(rows) / 23)).sum()
    assert abs(chi2 - 22) < 4 * np.sqrt(2 * 22)
