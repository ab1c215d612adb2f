"""Gradient flow against closed forms, against diffrax, and as the limit of gradient descent."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.memory import Memory
from cases.problems import least_squares, tanh_net, two_layer
from scipy.integrate import quad
from scipy.linalg import expm

import steppe
from steppe import losses, until, when
from steppe.check import ArgumentError
from steppe.dynamics import GD, RK4, RKC2, Decayed, Flow, Schedule, Stage
from steppe.dynamics._flow.flow import LOCATED
from steppe.dynamics._flow.method import STABLE, coefficients
from steppe.networks import diagonal_problem
from steppe.papers.conflicting_biases.theory.flow import flow_limit


class Quadratic:
    """w′ = −H(w − best) in closed form."""

    def __init__(self, p):
        X, y = np.asarray(p.x, float), np.asarray(p.y, float)
        self.H, self.w0 = X.T @ X / len(y), np.asarray(p.w0, float)
        self.best = np.linalg.lstsq(X, y, rcond=None)[0]

    def at(self, t):
        return self.best + expm(-self.H * t) @ (self.w0 - self.best)


def distance(a, b):
    return float(np.linalg.norm(np.asarray(a, float) - b) / np.linalg.norm(b))


P = least_squares()
EXACT = Quadratic(P)
TANH = tanh_net()


def reference(p, t):
    """By a method of order five with errors far below those that are compared with it."""
    term = diffrax.ODETerm(lambda t, w, p: -jax.grad(p.loss)(w))
    control = diffrax.PIDController(rtol=1e-9, atol=1e-11)
    solved = diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, t, 1e-3, p.w0, args=p, stepsize_controller=control, max_steps=100_000
    )
    return np.asarray(solved.ys[0])


@pytest.mark.parametrize("s", [2, 3, 10, 100])
def test_stability_polynomial(s):
    """The coefficients give |R(z)| ≤ 1 on the interval claimed, and R(z) = 1 + z + z²/2 + O(z³): order two."""

    def R(z):  # noqa: N802
        first = s * (s - 1) // 2 - 1
        d, before, slope = np.zeros_like(z), np.zeros_like(z), z
        for mu, nu, weight, weight0 in coefficients(100)[first : first + s]:
            d, before = mu * d + nu * before + weight * slope + weight0 * z, d
            slope = z * (1 + d)
        return 1 + d

    z = np.linspace(-STABLE * (s**2 - 1), 0, 5001)
    assert np.abs(R(z)).max() <= 1 + 1e-12
    for x in (1e-3, -1e-3):  # the third derivative of R at 0 is below 1
        assert abs(R(np.array([x]))[0] - (1 + x + x * x / 2)) < abs(x) ** 3 / 6 + 1e-12


@pytest.mark.parametrize("rtol", [1e-3, 1e-5, 1e-7])
def test_least_squares_to_the_tolerance_asked_for(rtol):
    r = steppe.run(P, Flow(rtol), stop=until.time(5.0))
    assert r.outcome == "exhausted"
    assert r.records["time"][-1] == 5.0
    assert distance(r.w, EXACT.at(5.0)) <= rtol


@pytest.mark.parametrize("short", [1.0, 0.1, 0.02])
@pytest.mark.parametrize("rtol", [1e-2, 1e-3, 1e-4])
def test_the_error_is_a_share_of_the_way_not_of_w(short, rtol):
    """From a start near the end the way is a small part of ‖w‖, and so is the error."""
    w0 = EXACT.best + short * (EXACT.w0 - EXACT.best)
    end = EXACT.best + short * (EXACT.at(5.0) - EXACT.best)
    r = steppe.run(P, Flow(rtol), w0, stop=until.time(5.0))
    assert np.linalg.norm(r.w - end) <= rtol * np.linalg.norm(end - w0)


def test_going_on_from_an_origin_costs_as_much_as_one_flow():
    """In ten legs, each of which begins anew with a short step; without the origin the way is short each time, too."""

    def legs(origin):
        w, gradients = TANH.w0, 0
        for _ in range(10):
            r = steppe.run(TANH, Flow(1e-4, origin=origin), w, stop=until.time(2.0))
            w, gradients = r.w, gradients + r.gradients
        return w, gradients

    whole = steppe.run(TANH, Flow(1e-4), stop=until.time(20.0))
    (w, gradients), (_, more) = legs(TANH.w0), legs(None)
    assert distance(w, reference(TANH, 20.0)) <= 1e-4
    assert gradients <= 1.3 * whole.gradients < more


def test_order_two_of_the_error_in_the_steps():
    """Four times the steps are a sixteenth of the error, up to how evenly they are spread."""
    runs = [steppe.run(P, Flow(rtol), stop=until.time(5.0)) for rtol in (1e-5, 1e-7)]
    errors, steps = [distance(r.w, EXACT.at(5.0)) for r in runs], [r.steps for r in runs]
    order = np.log(errors[0] / errors[1]) / np.log(steps[1] / steps[0])
    assert order == pytest.approx(2, abs=0.1)


def test_order_four_of_the_classical_method():
    runs = [steppe.run(P, Flow(method=RK4(alpha)), stop=until.time(5.0)) for alpha in (0.2, 0.05)]
    errors, steps = [distance(r.w, EXACT.at(5.0)) for r in runs], [r.steps for r in runs]
    order = np.log(errors[0] / errors[1]) / np.log(steps[1] / steps[0])
    assert order == pytest.approx(4, abs=0.2)
    assert all(r.gradients >= 4 * r.steps + 1 for r in runs)


def test_agrees_with_diffrax_on_a_network():
    assert distance(steppe.run(TANH, Flow(1e-4), stop=until.time(20.0)).w, reference(TANH, 20.0)) <= 1e-4


def test_survives_the_kinks_of_relu():
    """This flow slides along kinks, where a method of high order such as diffrax's gets stuck; tiny steps of gradient
    descent do not, and are 5e-6 from those of a quarter of their length."""
    p = two_layer()
    r = steppe.run(p, Flow(1e-3), stop=until.time(2.0))
    assert r.outcome == "exhausted"
    tiny = np.asarray(steppe.run(p, GD(2e-5), stop=until.steps(100_000)).w)
    assert distance(r.w, tiny) <= 1e-3


def test_diagonal_network_ends_where_the_closed_form_does():
    x, y, w0 = [1.0, 0.5, 0.25], 2.0, np.array([0.2, 0.3, 0.4])
    p = diagonal_problem(x, y, start=w0)
    r = steppe.run(p, Flow(1e-6), stop=until.loss(1e-20))
    assert r.outcome == "reached"
    assert distance(r.w, flow_limit(x, y, w0)) <= 1e-6


@pytest.mark.parametrize("ratio", [1.0, 3.0, -0.5])
def test_scalar_network_at_every_time(ratio):
    """L = ½(ab − y)²: a² − b² is conserved, so that u = ab follows u′ = (y − u)√(4u² + (a² − b²)²): the time to a u is
    an integral, and where a = b it is the logistic law in closed form."""
    y, b0 = 2.0, 0.3
    a0, times = ratio * b0, np.array([0.1, 0.5, 1.0, 3.0])
    p = steppe.Problem(lambda w, x: w[0] * w[1] * x, np.array([a0, b0]), np.ones(1), np.full(1, y), losses.half_mse)
    r = steppe.run(p, Flow(1e-6), stop=until.time(3.0), record={"w": _point}, when=when.times(times[:-1]))
    a, b = r.records["w"][1:].T
    slack = 1e-6 * 2 * y  # rtol of the way of a and b, and what that is in their products
    np.testing.assert_allclose(a**2 - b**2, a0**2 - b0**2, rtol=0, atol=slack)
    speed = lambda u: (y - u) * np.sqrt(4 * u**2 + (a0**2 - b0**2) ** 2)  # noqa: E731
    for t, u in zip(times, a * b, strict=True):
        late = quad(lambda v: 1 / speed(v), a0 * b0, u, epsabs=1e-12)[0] - t
        assert abs(late) * speed(u) <= slack
        if ratio == 1:
            assert u == pytest.approx(y / (1 + (y / b0**2 - 1) * np.exp(-2 * y * t)), rel=0, abs=slack)


def _point(p, w):
    return np.asarray(w)


def test_gradients_grow_with_the_root_of_the_stiffness():
    """A hundred times the stiffness: some ten times the gradients a time, not a hundred (up to where the most stages
    are taken, at 1e6 here)."""

    def cost(kappa):
        x = np.sqrt(2) * np.diag([1.0, np.sqrt(kappa)])
        p = steppe.Problem(_linear, np.ones(2), x, np.zeros(2), steppe.losses.half_mse)
        r = steppe.run(p, Flow(1e-3), stop=until.time(3.0))
        end = np.array([np.exp(-3.0), 0])
        assert np.linalg.norm(r.w - end) <= 1e-3 * np.linalg.norm(end - 1)  # the rtol asked for, of the way
        return r.gradients

    assert cost(1e5) <= 15 * cost(1e3)


def _linear(w, x):
    return x @ w


def test_single_precision():
    p = steppe.Problem(_linear, np.asarray(P.w0, np.float32), P.x, P.y, steppe.losses.half_mse)
    r = steppe.run(p, Flow(1e-3), stop=until.time(5.0))
    assert r.w.dtype == np.float32
    assert distance(r.w, EXACT.at(5.0)) <= 1e-3
    with pytest.raises(ArgumentError, match=r"rtol must be at least .* in float32"):
        steppe.run(p, Flow(1e-8), stop=until.time(5.0))


@pytest.mark.parametrize("goal", np.geomspace(0.5, 1e-3, 12))
def test_every_loss_is_located_as_exactly(goal):
    r = steppe.run(TANH, Flow(1e-3), stop=until.loss(goal))
    assert goal * (1 - LOCATED) * (1 - 1e-13) <= float(TANH.loss(r.w)) <= goal * (1 + 1e-13)  # compiled twice


def test_the_loss_is_located_within_a_step():
    exact = EXACT.at(1.0)
    goal = float(P.loss(jnp.asarray(exact)))
    r = steppe.run(P, Flow(1e-6), stop=until.loss(goal))
    assert r.outcome == "reached"
    assert goal * (1 - 2e-6) <= float(P.loss(r.w)) <= goal  # LOCATED, and the rounding of two evaluations
    assert distance(r.w, exact) <= 1e-6 * 5  # dL/dt turns an error of w into one of the time
    assert r.records["time"][-1] == pytest.approx(1.0, rel=1e-5)


def test_records_at_chosen_times_and_nothing_else_changes():
    times = [0.1, 0.25, 1.0, 3.0]
    w = {"w": lambda p, w: np.asarray(w)}
    r = steppe.run(P, Flow(1e-4), stop=until.time(5.0), record=w, when=when.times(times))
    assert r.records["time"].tolist() == [0.0, *times, 5.0]
    for t, row in zip(r.records["time"], r.records["w"], strict=True):
        assert distance(row, EXACT.at(t)) <= 1e-4
    plain = steppe.run(P, Flow(1e-4), stop=until.time(5.0))
    np.testing.assert_array_equal(r.w, plain.w)
    assert (r.steps, r.gradients) == (plain.steps, plain.gradients)


def test_outcomes():
    floor = float(P.loss(jnp.asarray(EXACT.best)))
    assert steppe.run(P, Flow(1e-3), stop=until.loss(0.5 * floor)).outcome == "stalled"
    start = steppe.run(P, Flow(1e-3), stop=until.loss(1e9))
    assert (start.outcome, start.steps, start.gradients) == ("reached", 0, 1)
    assert steppe.run(P, Flow(1e-3), P.w0 * 1e200, stop=until.time(1.0)).outcome == "diverged"
    resting = steppe.run(P, Flow(1e-3), stop=until.steps(0))
    assert (resting.outcome, resting.steps) == ("exhausted", 0)


def test_a_point_without_gradient_stays():
    p = two_layer()
    dead = jnp.zeros_like(p.w0)  # every neuron is off
    r = steppe.run(p, Flow(1e-3), dead, stop=until.time(2.0))
    assert (r.outcome, r.records["time"][-1]) == ("exhausted", 2.0)
    np.testing.assert_array_equal(r.w, dead)
    assert steppe.run(p, Flow(1e-3), dead, stop=until.loss(0.0)).outcome == "stalled"


def test_gradients_are_counted_exactly():
    """Every evaluation is seen from outside by a callback in the network; a product evaluates once and counts two."""
    seen = {"plain": 0, "product": 0}

    @jax.custom_jvp
    def counted(g):
        jax.debug.callback(lambda _: seen.__setitem__("plain", seen["plain"] + 1), g.sum())
        return g

    @counted.defjvp
    def _(primals, tangents):
        jax.debug.callback(lambda _: seen.__setitem__("product", seen["product"] + 1), primals[0].sum())
        return primals[0], tangents[0]

    @jax.custom_vjp
    def identity(w):
        return w

    identity.defvjp(lambda w: (w, None), lambda _, g: (counted(g),))
    p = steppe.Problem(lambda w, x: x @ identity(w), P.w0, P.x, P.y, steppe.losses.half_mse)
    r = steppe.run(p, Flow(1e-2), stop=until.time(2.0))
    jax.effects_barrier()
    assert seen["product"] > 0
    assert r.gradients == seen["plain"] + 2 * seen["product"]


def test_compiles_once():
    """Tracing is counted by a side effect of the network: another start, rtol and horizon trace nothing more."""
    traced = []

    def predict(w, x):
        traced.append(1)
        return x @ w

    p = steppe.Problem(predict, P.w0, P.x, P.y, steppe.losses.half_mse)
    steppe.run(p, Flow(1e-2), stop=until.time(2.0))
    once = len(traced)
    steppe.run(p, Flow(1e-3), 2 * p.w0, stop=until.time(3.0))
    assert len(traced) == once


def test_resumes_to_the_bit():
    options = {"stop": until.time(5.0), "when": when.times([0.5, 1.0, 2.0, 4.0])}
    memory = Memory(number=3)
    whole = steppe.run(P, Flow(1e-4), checkpoint=memory, **options)
    assert memory.saved is not None
    resumed = steppe.run(P, Flow(1e-4), checkpoint=Memory(saved=memory.saved), **options)
    np.testing.assert_array_equal(whole.w, resumed.w)
    assert (whole.steps, whole.gradients) == (resumed.steps, resumed.gradients)
    for name, column in whole.records.items():
        np.testing.assert_array_equal(column, resumed.records[name])


def test_a_checkpoint_of_another_version_is_refused():
    memory = Memory(number=1)
    steppe.run(P, Flow(1e-4), stop=until.time(5.0), checkpoint=memory)
    states = [k for k in memory.saved if k.startswith("state/")]
    del memory.saved[f"state/{len(states) - 1}"]
    with pytest.raises(ArgumentError, match="version of steppe that began it"):
        steppe.run(P, Flow(1e-4), stop=until.time(5.0), checkpoint=Memory(saved=memory.saved))


def test_many_times_within_short_steps():
    """A step cut short by a time to look at says nothing of how many steps to take at once."""
    times = np.linspace(0.1, 5.0, 60)
    r = steppe.run(P, Flow(1e-4), stop=until.time(5.0), when=when.times(times))
    np.testing.assert_allclose(r.records["time"], [0, *times])


def test_after_gradient_descent_in_a_schedule():
    r = steppe.run(P, Schedule((Stage(GD(0.1), 10), Stage(Flow(1e-4)))), stop=until.time(1.0))
    first = steppe.run(P, GD(0.1), stop=until.steps(10))
    alone = steppe.run(P, Flow(1e-4), first.w, stop=until.time(1.0))
    np.testing.assert_array_equal(r.w, alone.w)
    assert (r.steps, r.gradients) == (10 + alone.steps, 10 + alone.gradients)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Flow(0.0),
        lambda: Flow(1e-3, method="euler"),
        lambda: Flow(1e-3, origin=[np.nan, 1.0]),
        lambda: steppe.run(P, Flow(1e-3, origin=np.zeros(3)), stop=until.time(1.0)),
        lambda: Flow(method=RKC2(1)),
        lambda: RK4(0.0),
        lambda: when.times([]),
        lambda: steppe.run(P, GD(0.1), stop=until.time(1.0)),
        lambda: steppe.run(P, GD(0.1), stop=until.steps(1), when=when.times([1.0])),
        lambda: steppe.run(P, Flow(), stop=until.epochs(3)),
        lambda: steppe.run(P, Flow(), stop=until.time(3), when=when.every(epochs=1)),
        lambda: steppe.run(P, Schedule((Stage(Flow(), 3), Stage(GD(0.1)))), stop=until.steps(5)),
        lambda: steppe.dynamics.run_many(P, Flow(), stop=until.steps(3)),
    ],
)
def test_bad_input(build):
    with pytest.raises(ArgumentError):
        build()


def test_nothing_wraps_a_flow():
    p = TANH
    with pytest.raises(ArgumentError, match="alone"):
        steppe.run(p, Decayed(Flow(), {"out"}, 0.1), stop=until.steps(2))
