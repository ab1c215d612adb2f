"""Many runs at once are as many single runs: the same steps, the same ends, the same reasons to end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import tanh_net

import steppe
from steppe import until, when
from steppe.check import ArgumentError
from steppe.dynamics import GD, SAM, HeavyBall, LabelNoise, run_many
from steppe.networks import diagonal_problem

RATES = np.array([0.1, 0.6, 0.9, 3.0])
DYNAMICS = {
    "gd": GD,
    "heavy-ball": lambda lr: HeavyBall(lr, 0.2),
    "sam": lambda lr: SAM(lr, 0.02, None),
    "label-noise": lambda lr: LabelNoise(GD(lr), 0.01),
}


@pytest.fixture(scope="module")
def problem():
    return diagonal_problem([1.0, 0.4], 0.66, start=0.05)


@pytest.mark.parametrize("name", DYNAMICS)
def test_vectorised_equals_one_by_one(problem, name):
    """At the edge of stability rounding is magnified, but 60 steps are too few for it to show."""
    make = DYNAMICS[name]
    many = run_many(problem, make(jnp.asarray(RATES)), stop=until.steps(60) | until.loss(1e-12), key=3)
    for k, lr in enumerate(RATES):
        one = steppe.run(problem, make(lr), stop=until.steps(60) | until.loss(1e-12), key=3, record={})
        assert (many.outcome[k], many.steps[k]) == (one.outcome, one.steps)
        np.testing.assert_allclose(many.w[k], one.w, rtol=1e-9)


def test_any_problem_and_many_starts():
    p = tanh_net()
    starts = np.stack([p.w0, 2 * p.w0, -p.w0])
    many = run_many(p, GD(0.1), starts, stop=until.steps(20))
    for k, start in enumerate(starts):
        np.testing.assert_allclose(many.w[k], steppe.run(p, GD(0.1), start, stop=until.steps(20)).w, rtol=1e-11)
    assert many.outcome.tolist() == ["exhausted"] * 3


def test_each_run_may_have_its_own_noise(problem):
    noisy = LabelNoise(GD(0.1), 0.3)
    many = run_many(problem, noisy, stop=until.steps(30), key=[1, 2, 1])
    np.testing.assert_array_equal(many.w[0], many.w[2])
    assert not np.array_equal(many.w[0], many.w[1])
    np.testing.assert_allclose(many.w[1], steppe.run(problem, noisy, stop=until.steps(30), key=2).w, rtol=1e-11)


def test_moments_are_points_of_the_same_run(problem):
    lr = jnp.asarray(RATES[:3])
    whole = run_many(problem, GD(lr), stop=until.steps(40))
    cut = run_many(problem, GD(lr), stop=until.steps(40), record={"w": lambda p, w: w}, when=when.steps([7]))
    np.testing.assert_array_equal(whole.w, cut.w)
    assert cut.moments.tolist() == [0, 7, 40]
    path = cut.records["w"]
    np.testing.assert_array_equal(path[:, 0], np.broadcast_to(problem.w0, (3, 2)))
    np.testing.assert_array_equal(path[:, 1], run_many(problem, GD(lr), stop=until.steps(7)).w)
    np.testing.assert_array_equal(path[:, 2], cut.w)
    assert (whole.moments.size, whole.records) == (0, {})


def test_a_run_that_ended_is_recorded_as_it_ended(problem):
    runs = run_many(
        problem, GD(jnp.array([0.5, 5.0])), stop=until.loss(1e-8) | until.steps(10_000),
        record={"w": lambda p, w: w}, when=when.steps([5, 9_000]),
    )  # fmt: skip
    assert runs.outcome.tolist() == ["reached", "diverged"]
    assert runs.moments.tolist() == [0, 5, 9_000, 10_000]
    np.testing.assert_array_equal(runs.records["w"][:, 2], runs.w)


class Interrupting:
    """A checkpoint that ends the runs at its second save."""

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


def test_killed_runs_resume_to_the_bit(problem):
    def go(checkpoint=None, heard=None):
        return run_many(
            problem, HeavyBall(jnp.asarray(RATES), 0.2), stop=until.steps(500),
            record={"loss": lambda p, w: p.loss(w)}, when=when.logarithmic(per_decade=2), checkpoint=checkpoint,
            progress=heard,
        )  # fmt: skip

    whole, checkpoint, heard = go(), Interrupting(), []
    with pytest.raises(KeyboardInterrupt):
        go(checkpoint)
    again = go(checkpoint, heard.append)
    assert heard[-1].latest == {"ended": (whole.outcome != "exhausted").sum()}
    for name in ("w", "outcome", "steps", "moments"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(again, name))
    np.testing.assert_array_equal(whole.records["loss"], again.records["loss"])


def test_no_time_no_steps(problem):
    runs = run_many(problem, GD(jnp.asarray(RATES)), stop=until.seconds(0.0))
    assert (runs.outcome.tolist(), runs.steps.tolist()) == (["exhausted"] * 4, [0] * 4)


@pytest.mark.parametrize("moments", [[], [5], [199]])
def test_divergence_is_seen_whenever_it_comes(problem, moments):
    stop, record = until.steps(200), {"w": lambda p, w: w}
    runs = run_many(problem, GD(jnp.array([0.5, 5.0])), stop=stop, record=record, when=when.steps(moments))
    assert runs.outcome.tolist()[1] == "diverged"
    assert runs.ended("diverged").tolist() == [False, True]
    assert runs.steps[1] < 30


def test_where_nothing_moves_a_run_is_stalled(problem):
    runs = run_many(problem, GD(0.1), np.zeros((2, 2)), stop=until.steps(50) | until.loss(1e-9))
    assert (runs.outcome.tolist(), runs.steps.tolist()) == (["stalled", "stalled"], [0, 0])


def test_reaching_the_loss_with_the_last_step_counts(problem):
    one = steppe.run(problem, GD(0.5), stop=until.loss(1e-8))
    assert one.outcome == "reached"
    for steps, outcome in ((one.steps, "reached"), (one.steps - 1, "exhausted")):
        stop = until.steps(steps) | until.loss(1e-8)
        assert run_many(problem, GD(0.5), stop=stop).outcome.tolist() == [outcome]


def test_heavy_ball_is_stable_up_to_its_own_edge():
    """On ½s w² it converges iff s < 2(1 + β)/η."""
    p = steppe.Problem(lambda w, x: w * x, jnp.ones(1), jnp.ones(1), jnp.zeros(1), steppe.losses.half_mse)
    for beta in (0.0, 0.3, 0.9):
        edge = 2 * (1 + beta)
        stop = until.steps(50_000) | until.loss(1e-20)
        runs = run_many(p, HeavyBall(jnp.array([0.98 * edge, 1.02 * edge]), beta), stop=stop)
        assert runs.outcome.tolist() == ["reached", "diverged"]


def test_one_compilation_for_all_rates(problem):
    counted = []

    def predict(w, x):
        counted.append(1)
        return x @ w**2

    p = steppe.Problem(predict, problem.w0, problem.x, problem.y, steppe.losses.half_mse)
    run_many(p, GD(jnp.asarray(RATES)), stop=until.steps(5))
    before = len(counted)
    run_many(p, GD(jnp.asarray(2 * RATES)), stop=until.steps(9))
    assert len(counted) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: run_many(p, GD(jnp.ones(3)), jnp.ones((2, 2)), stop=until.steps(1)), "the same number of runs"),
        (lambda p: run_many(p, GD(jnp.ones((2, 2))), stop=until.steps(1)), "the same number of runs"),
        (lambda p: run_many(p, GD(0.1), jnp.ones((2, 3)), stop=until.steps(1)), "w must be one row of 2"),
        (lambda p: run_many(p, GD(0.1), stop=3), "stop must be a condition"),
        (lambda p: run_many(p, GD(0.1), stop=until.time(1.0)), "other than time"),
        (lambda p: run_many(p, GD(0.1), stop=until.steps(3), when=when.times([1.0])), "without flow times"),
        (lambda p: run_many(p, GD(0.1), stop=until.steps(3), key=-1), "key must be"),
        (lambda p: run_many(p, steppe.dynamics.Flow(), stop=until.steps(3)), "a dynamics in steps"),
        (lambda p: run_many(None, GD(0.1), stop=until.steps(3)), "problem must be"),
        (lambda p: run_many(tanh_net(), GD(0.1, batch_size=2), stop=until.steps(3)), "of full batches"),
    ],
)
def test_wrong_arguments_are_named(problem, call, message):
    with pytest.raises(ArgumentError, match=message):
        call(problem)


def test_heavy_ball_refuses_bad_rates():
    with pytest.raises(ArgumentError, match="momentum must be"):
        HeavyBall(0.1, -0.5)
    assert jax.tree.leaves(HeavyBall(0.1, 0.5))[0] == 0.1
