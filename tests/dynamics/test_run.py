"""The loop: stops, records, outcomes, and what it costs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import least_squares, tanh_net, two_layer

import steppe
from steppe import until, when
from steppe.check import ArgumentError
from steppe.dynamics import GD, SAM, Schedule, Stage


def scalar(target=0.0, start=1.0):
    """L(w) = ½(w − target)²: gradient descent is w ← w − lr (w − target)."""
    return steppe.Problem(lambda w, x: w * x, np.array([start]), np.ones(1), np.array([target]), steppe.losses.half_mse)


def test_gd_on_a_quadratic_in_closed_form():
    p = least_squares()
    X, y, n = np.asarray(p.x), np.asarray(p.y), len(p)
    lr, steps = 0.1, 57
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    shrink = np.linalg.matrix_power(np.eye(5) - lr * X.T @ X / n, steps)
    r = steppe.run(p, GD(lr), stop=until.steps(steps))
    np.testing.assert_allclose(r.w, best + shrink @ (np.asarray(p.w0) - best), rtol=1e-11)
    assert (r.outcome, r.steps, r.gradients) == ("exhausted", steps, steps)


def test_weight_decay_in_closed_form():
    r = steppe.run(scalar(), GD(0.1, weight_decay=0.5), stop=until.steps(7))
    np.testing.assert_allclose(r.w, [(1 - 0.1 * 1.5) ** 7], rtol=1e-14)


def test_sam_in_closed_form():
    """On ½w² the ascent adds ρ sign(w): w ← w − lr (w + ρ sign w)."""
    w, lr, rho = 1.0, 0.1, 0.3
    for _ in range(25):
        w -= lr * (w + rho * np.sign(w))
    r = steppe.run(scalar(), SAM(lr, rho), stop=until.steps(25))
    np.testing.assert_allclose(r.w, [w], rtol=1e-12)
    assert r.gradients == 50


def test_a_zero_gradient_gives_no_perturbation():
    r = steppe.run(scalar(start=0.0), SAM(0.1, 1.0, batch_size=None), stop=until.steps(5))
    assert r.w.tolist() == [0.0]
    p = two_layer()
    dead = jnp.zeros_like(p.w0)  # every neuron is off: all gradients vanish although the loss does not
    for fast in (True, False):
        r = steppe.run(p, SAM(0.1, 1.0), dead, stop=until.epochs(2), use_kernels=fast)
        np.testing.assert_array_equal(r.w, dead)


def test_a_tiny_gradient_still_has_a_direction():
    p = scalar(start=1e-200)  # its square underflows
    r = steppe.run(p, SAM(0.5, 1.0), stop=until.steps(1))
    np.testing.assert_allclose(r.w, [-0.5], rtol=1e-14)


def test_until_loss_stops_at_the_first_step_below():
    p = least_squares()
    goal = float(p.loss(p.w0)) / 3
    r = steppe.run(p, GD(0.05), stop=until.loss(goal))
    before = steppe.run(p, GD(0.05), stop=until.steps(r.steps - 1))
    assert r.outcome == "reached"
    assert float(p.loss(r.w)) <= goal < float(p.loss(before.w))


@pytest.mark.parametrize("fast", [True, False])
def test_until_loss_with_mini_batches_looks_after_every_epoch(fast):
    p = two_layer(n=10)
    goal = 0.5 * float(p.loss(p.w0))
    r = steppe.run(p, GD(0.02, batch_size=3), stop=until.loss(goal) | until.epochs(500), use_kernels=fast)
    assert r.outcome == "reached"
    assert r.steps % 4 == 0
    before = steppe.run(p, GD(0.02, batch_size=3), stop=until.steps(r.steps - 4), use_kernels=fast)
    assert float(p.loss(r.w)) <= goal < float(p.loss(before.w))


def test_a_goal_met_at_the_start_takes_no_step():
    r = steppe.run(scalar(), GD(0.1), stop=until.loss(10.0))
    assert (r.outcome, r.steps) == ("reached", 0)


def test_zero_steps():
    r = steppe.run(scalar(), GD(0.1), stop=until.steps(0))
    assert (r.outcome, r.steps, r.records["step"].tolist()) == ("exhausted", 0, [0])


def test_divergence_is_data():
    r = steppe.run(scalar(), GD(3.0), stop=until.steps(10_000))
    assert r.outcome == "diverged"
    assert r.steps == 512  # |w| doubles, and w² = 4^512 is the first that overflows
    assert np.isfinite(r.records["loss"]).all()


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("dynamics", [GD(50.0), GD(50.0, batch_size=2), SAM(50.0, 0.1)])
def test_divergence_of_a_net(dynamics, fast):
    p = two_layer()
    r = steppe.run(p, dynamics, stop=until.epochs(2000), use_kernels=fast)
    assert r.outcome == "diverged"
    assert not np.isfinite(float(p.loss(r.w)))


@pytest.mark.parametrize("fast", [True, False])
def test_stalled_where_no_step_can_change_anything(fast):
    p = two_layer()
    dead = jnp.zeros_like(p.w0)
    r = steppe.run(p, GD(0.1), dead, stop=until.loss(0.1) | until.steps(10**12), use_kernels=fast)
    assert (r.outcome, r.steps) == ("stalled", 0)
    r = steppe.run(p, GD(0.1), dead, stop=until.steps(10**12), use_kernels=fast)  # a budget is used up at once
    assert (r.outcome, r.steps, r.gradients) == ("exhausted", 10**12, 0)
    assert r.records["step"].tolist() == [0, 10**12]


def test_seconds():
    r = steppe.run(least_squares(), GD(1e-9), stop=until.seconds(0.3) | until.steps(10**12))
    assert r.outcome == "exhausted"
    assert 0 < r.steps < 10**12


def test_epochs_and_steps_of_ragged_batches():
    p = two_layer(n=10)
    r = steppe.run(p, GD(0.01, batch_size=3), stop=until.epochs(5))
    assert r.steps == 5 * 4
    assert r.records["epoch"][-1] == 5.0


def test_record_when():
    p = least_squares()
    r = steppe.run(p, GD(0.01), stop=until.steps(25), record={"w": lambda p, w: w}, when=when.every(steps=10))
    assert r.records["step"].tolist() == [0, 10, 20, 25]
    assert r.records["w"].shape == (4, 5)
    np.testing.assert_array_equal(r.records["w"][-1], r.w)
    r = steppe.run(p, GD(0.01), stop=until.steps(100), when=when.logarithmic(per_decade=1))
    assert r.records["step"].tolist() == [0, 1, 10, 100]


def test_records_in_epochs_across_stages_of_different_batch_size():
    p = two_layer(n=9)
    schedule = Schedule((Stage(GD(0.01, batch_size=3), 4), Stage(GD(0.01), 5), Stage(SAM(0.01, 0.1), 2)))
    r = steppe.run(p, schedule, when=when.every(epochs=3))
    assert r.records["epoch"].tolist() == [0, 3, 6, 9, 11]
    assert r.records["step"].tolist() == [0, 9, 14, 17, 12 + 5 + 18]
    assert r.gradients == 12 + 5 + 2 * 18


def test_recording_does_not_change_the_run():
    p = two_layer()
    plain = steppe.run(p, SAM(0.01, 0.1), stop=until.epochs(20), record={})
    busy = steppe.run(p, SAM(0.01, 0.1), stop=until.epochs(20), when=when.every(steps=1))
    np.testing.assert_array_equal(plain.w, busy.w)


def test_estimates_are_recorded_with_their_error():
    rough = steppe.Estimate(1.0, 0.5, 1.5, confidence=0.9)
    r = steppe.run(least_squares(), GD(0.01), stop=until.steps(3), record={"a": lambda p, w: rough})
    assert set(r.records) == {"step", "epoch", "a", "a.lower", "a.upper"}
    exact = steppe.run(
        least_squares(), GD(0.01), stop=until.steps(3), record={"a": lambda p, w: steppe.Estimate.exact(1)}
    )
    assert set(exact.records) == {"step", "epoch", "a"}


def test_a_sweep_over_the_learning_rate_compiles_once():
    traces = []
    p = tanh_net()

    def predict(params, x):
        traces.append(1)
        return p.predict(params, x)

    q = steppe.Problem(predict, p.unravel(p.w0), p.x, p.y, p.loss_function)
    steppe.run(q, GD(0.1), stop=until.steps(10))
    before = len(traces)
    for lr in (0.2, 0.01, 1e-3):
        for steps in (3, 10, 77):
            steppe.run(q, GD(lr), stop=until.steps(steps))
    assert len(traces) == before


def test_stages_are_runs_one_after_the_other():
    p = two_layer()
    schedule = Schedule.table([(0.01, 0.0, 9, 0.1, 10), (0.02, 0.0, 9, 0.0, 5)])
    together = steppe.run(p, schedule)
    first = steppe.run(p, GD(0.01, weight_decay=0.1), stop=until.steps(10))
    second = steppe.run(p, GD(0.02), first.w, stop=until.steps(5))
    np.testing.assert_array_equal(together.w, second.w)
    assert together.steps == 15


def test_table_rows_choose_the_dynamics():
    gd, sam = Schedule.table([(0.01, 0.0, 100, 0.05, 10), (0.02, 0.1, 1, 0.0, 5)]).stages
    assert isinstance(gd.dynamics, GD)
    assert isinstance(sam.dynamics, SAM)
    assert (gd.epochs, gd.dynamics.batch_size, float(gd.dynamics.weight_decay)) == (10, 100, 0.05)
    assert (sam.dynamics.batch_size, float(sam.dynamics.rho)) == (1, 0.1)


def test_stop_cuts_a_schedule():
    p = two_layer(n=9)
    schedule = Schedule.table([(0.01, 0.0, 3, 0.0, 4), (0.01, 0.0, 9, 0.0, 50)])
    assert steppe.run(p, schedule, stop=until.steps(5)).steps == 5
    assert steppe.run(p, schedule, stop=until.epochs(3)).steps == 9
    assert steppe.run(p, schedule, stop=until.epochs(10)).steps == 12 + 6
    assert steppe.run(p, schedule, stop=until.steps(12)).steps == 12


def test_keys():
    p = two_layer()
    runs = [
        steppe.run(p, SAM(0.01, 0.1), stop=until.epochs(3), key=k).w
        for k in (5, jax.random.key(5), jax.random.PRNGKey(5), np.int64(5), 6)
    ]
    for same in runs[1:4]:
        np.testing.assert_array_equal(runs[0], same)
    assert not np.array_equal(runs[0], runs[4])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: steppe.run(p, GD(-0.1), stop=until.steps(1)), "lr must be a finite number ≥ 0; got -0.1"),
        (lambda p: steppe.run(p, GD(float("nan")), stop=until.steps(1)), "lr must be a finite number"),
        (lambda p: steppe.run(p, SAM(0.1, -1.0), stop=until.steps(1)), "rho must be a finite number ≥ 0"),
        (lambda p: steppe.run(p, SAM(0.1, 0.1, 0), stop=until.steps(1)), "batch_size must be a whole number ≥ 1"),
        (lambda p: steppe.run(p, GD(0.1)), "stop must be a condition of steppe.until; got None"),
        (lambda p: steppe.run(p, GD(0.1), stop=10), "stop must be a condition of steppe.until; got 10"),
        (lambda p: steppe.run(p, GD(0.1), stop=until.time(1.0)), "without a flow time"),
        (lambda p: steppe.run(p, 0.1, stop=until.steps(1)), "dynamics must be a dynamics or a Schedule"),
        (lambda p: steppe.run(None, GD(0.1), stop=until.steps(1)), "problem must be a steppe.Problem"),
        (lambda p: steppe.run(p, GD(0.1), np.ones(3), stop=until.steps(1)), "w must be a flat vector"),
        (lambda p: steppe.run(p, GD(0.1), stop=until.steps(1), key=-1), "key must be a whole number"),
        (lambda p: steppe.run(p, GD(0.1), stop=until.steps(1), record={"loss": 3}), r"record\['loss'\]"),
        (lambda p: steppe.run(p, GD(0.1), stop=until.steps(1), record={"step": print}), r"record\['step'\]"),
        (lambda p: Schedule(()), "stages must be at least one stage"),
        (lambda p: Schedule((Stage(GD(0.1)), Stage(GD(0.1), 3))), "given for every stage but the last"),
        (lambda p: Schedule.table([(0.1, 0.0, 1, 0.0, 0)]), "epochs must be a whole number ≥ 1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(least_squares())


class Memory:
    """A checkpoint in memory that is due at every call, and stops the run after some of them."""

    def __init__(self, saved=None, limit=None):
        self.saved, self.limit = saved, limit

    def load(self):
        return self.saved

    def due(self):
        return True

    def save(self, arrays):
        self.saved = {name: np.array(a) for name, a in arrays.items()}
        self.limit = None if self.limit is None else self.limit - 1
        if self.limit == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("limit", range(1, 14, 3))
def test_interrupted_anywhere_it_goes_on_to_the_same_bits(limit, fast):
    """Stages of every kind, also with different paths: the checkpoint belongs to the stage it was saved in."""
    p = two_layer(n=10, dtype=np.float32)
    schedule = Schedule.table([(0.02, 0.1, 1, 0.0, 3), (0.02, 0.0, 10, 0.1, 8), (0.02, 0.1, 3, 0.0, 5)])
    options = {"when": when.every(steps=7), "use_kernels": fast, "key": 4}
    whole = steppe.run(p, schedule, **options)
    memory = Memory(limit=limit)
    with pytest.raises(KeyboardInterrupt):
        steppe.run(p, schedule, checkpoint=memory, **options)
    again = steppe.run(p, schedule, checkpoint=Memory(memory.saved), **options)
    np.testing.assert_array_equal(whole.w, again.w)
    assert (whole.steps, whole.gradients, whole.outcome) == (again.steps, again.gradients, again.outcome)
    for name, column in whole.records.items():
        np.testing.assert_array_equal(column, again.records[name])


def test_progress_is_told():
    heard = []
    steppe.run(two_layer(), SAM(0.01, 0.1), stop=until.epochs(3), progress=heard.append)
    assert heard[-1].epoch == heard[-1].epochs == 3
    assert heard[-1].step == 27
    assert heard[0].latest["loss"] > 0
