"""How a step of the flow is judged: kinks are told from smooth losses, and cost what they are worth."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import tanh_net
from scipy.linalg import expm
from scipy.optimize import brentq

import steppe
from steppe import losses, networks, until
from steppe.dynamics._flow import Flow
from steppe.dynamics._flow.step import HELD, SHORT, Allowed, Judgement, judge, start, step, takes_back


def judged(off, h, *, before=None, back=False, kinked=0, allowed=1.0, kink=30.0, radius=1.0):
    """A step of length h that is off by so much; `before`: the length and the error of the last attempt at it."""
    first = before is None
    length, was_off = (0.0, 0.0) if first else before
    last = Judgement(*jnp.array([length, was_off, 0.0]), jnp.asarray(False), jnp.asarray(h), jnp.asarray(kinked))
    off, h, radius, smooth, kink = jnp.array([off, h, radius, allowed, kink])
    return judge(
        off, h, radius, Allowed(smooth, kink), back=jnp.asarray(back), order=2, last=last, first=jnp.asarray(first)
    )


@pytest.mark.parametrize(
    ("power", "length", "found"),
    [(1.0, 1.0, True), (0.5, 1.0, True), (2.0, 1.0, False), (3.0, 1.0, False), (1.0, 1.1 * SHORT, False)],
)
def test_kinks_are_known_by_the_power_with_which_errors_fall(power, length, found):
    """Half the length, and 2^−power of the error; a longer attempt tells nothing."""
    verdict = judged(20.0 * 0.5**power, length / 2, before=(length, 20.0))
    assert bool(verdict.accepted) == found
    assert int(verdict.kinked) == (HELD if found else 0)


@pytest.mark.parametrize(("length", "found"), [(1.0, True), (1.1 * SHORT, False)])
def test_kinks_are_known_by_errors_that_are_taken_back(length, found):
    verdict = judged(20.0, length, back=True)
    assert bool(verdict.accepted) == found
    assert int(verdict.kinked) == (HELD if found else 0)


@pytest.mark.parametrize(
    ("degrees", "length", "found"), [(0, 1.0, False), (100, 1.0, False), (140, 1.0, True), (180, 2.1, False)]
)
def test_an_error_is_taken_back_where_it_turns(degrees, length, found):
    angle = np.radians(degrees)
    a, b = jnp.array([2.0, 0.0]), 3 * jnp.array([np.cos(angle), np.sin(angle)])
    assert bool(takes_back(a, b, jnp.asarray(length), jnp.asarray(1.0))) == found


def test_across_kinks_steps_stay_those_of_descent():
    """Off by a tenth of what a kink may be: nine times the length, had it not to stay below 2/ρ."""
    verdict = judged(3.0, 0.5, kinked=5)
    assert bool(verdict.accepted)
    assert float(verdict.next_h) == pytest.approx(3 * 0.5)
    assert float(judged(3.0, 1.5, kinked=5).next_h) == pytest.approx(SHORT)
    # A longer one is judged as any other, and so is one without kinks.
    assert not bool(judged(3.0, 1.1 * SHORT, kinked=5).accepted)
    assert not bool(judged(3.0, 0.5).accepted)


def test_no_growth_after_a_rejection():
    assert float(judged(1e-6, 0.5, before=(1.0, 2.0)).next_h) == 0.5
    assert float(judged(1e-6, 0.5).next_h) == pytest.approx(1.5)


@eqx.filter_jit
def sees_kinks(problem, flow, time):
    """Whether the error of any step up to this time was held to be a kink's."""

    def body(carry):
        state, seen = carry
        state = step(problem, flow.method, flow.tolerance, state)
        return state, seen | (state.kinked > 0)

    begin = start(problem.w0, problem.w0, *jax.value_and_grad(problem.loss)(problem.w0), jnp.asarray(time))
    return jax.lax.while_loop(lambda carry: carry[0].now.t < time, body, (begin, jnp.asarray(False)))[1]


def quadratic(spectrum, start):
    """L = ½ Σ λᵢ wᵢ²."""
    roots = jnp.sqrt(jnp.asarray(spectrum))
    return steppe.Problem(
        lambda w, x: x * w[None], jnp.asarray(start), roots[None], jnp.zeros((1, len(roots))), losses.half_mse
    )


@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-6])
def test_smooth_flows_have_no_kinks(rtol):
    """Quadratic losses from gentle to stiff, the stiff directions far up their walls at the start; a tanh network."""
    rng = np.random.default_rng(0)
    for condition in (1.0, 1e2, 1e4):
        problem = quadratic(np.geomspace(1.0, condition, 6), rng.standard_normal(6))
        assert not sees_kinks(problem, Flow(rtol), 3.0)
    assert not sees_kinks(tanh_net(), Flow(rtol), 3.0)


class Sliding:
    """L = c|⟨u, w⟩| + ½ Σ λᵢ(wᵢ − bᵢ)²: to the kink ⟨u, w⟩ = 0, and along it, which no gradient there points to."""

    def __init__(self, seed, n=4, c=3.0):
        rng = np.random.default_rng(seed)
        self.spectrum, self.b, self.c = rng.uniform(0.5, 4.0, n), rng.standard_normal(n), c
        u = rng.standard_normal(n)
        self.u = u / np.linalg.norm(u)
        self.start = rng.standard_normal(n)
        self.start += (1.0 - self.u @ self.start) * self.u  # ⟨u, w⟩ = 1
        u, b, spectrum = map(jnp.asarray, (self.u, self.b, self.spectrum))
        value = losses.Loss(
            "sliding",
            lambda w, y: c * jnp.abs(u @ w) + 0.5 * jnp.sum(spectrum * (w - b) ** 2),
            lambda predictions, y: None,
        )
        self.problem = steppe.Problem(lambda w, x: w[None], jnp.asarray(self.start), jnp.zeros(1), jnp.zeros(1), value)

    def before(self, t):
        rest = self.b - self.c * self.u / self.spectrum
        return rest + np.exp(-self.spectrum * t) * (self.start - rest)

    def at(self, t):
        """w′ = −PΛ(w − b) past the kink, P the projection onto it."""
        hit = brentq(lambda s: self.u @ self.before(s), 0.0, 5.0)
        assert hit < t
        matrix = -(np.eye(len(self.b)) - np.outer(self.u, self.u)) * self.spectrum
        rest = np.append(self.before(hit), 1.0)
        whole = np.zeros((len(rest), len(rest)))
        whole[:-1, :-1], whole[:-1, -1] = matrix, -matrix @ self.b
        end = (expm(whole * (t - hit)) @ rest)[:-1]
        # It slides, at both ends of that time: the kink is steeper than the wall beside it.
        assert all(abs(self.u @ (self.spectrum * (w - self.b))) < self.c for w in (self.before(hit), end))
        return end


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_a_flow_that_slides_along_a_kink(seed):
    """In closed form. What is left of a kink may be rtol of the way, and so may all else together; and the gradients
    grow as 1/rtol, where an error a step of rtol^{3/2} would make them grow thirtyfold from 1e-2 to 1e-3."""
    sliding = Sliding(seed)
    end, gradients = sliding.at(3.0), []
    way = np.linalg.norm(end - sliding.start)
    for rtol in (1e-2, 1e-3):
        found = steppe.run(sliding.problem, Flow(rtol, verify=False), stop=until.time(3.0))
        assert np.linalg.norm(found.w - end) <= 2 * rtol * way
        gradients.append(found.gradients)
    assert gradients[1] < 1.5 * 10 * gradients[0]
    assert sees_kinks(sliding.problem, Flow(1e-2), 3.0)


def test_the_gradients_of_relu_networks_grow_as_the_error_falls():
    """No faster: at kinks the error is one over the gradients, whatever the method."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((30, 3)))
    y = jnp.sin(x[:, :1]) + 0.5 * jnp.abs(x[:, 1:2])
    net = networks.FCN((10, 10))
    problem = steppe.Problem(net, net.init((3,), 1, rng, np.float64), x, y, losses.half_mse)
    few, many = (steppe.run(problem, Flow(r, verify=False), stop=until.time(30.0)) for r in (1e-2, 1e-3))
    assert many.gradients < 1.5 * 10 * few.gradients
    tiny = steppe.run(problem, Flow(1e-4, verify=False), stop=until.time(30.0)).w
    way = float(jnp.linalg.norm(tiny - problem.w0))
    assert float(jnp.linalg.norm(many.w - tiny)) <= 3e-3 * way  # kinks: rtol each, and few of them
