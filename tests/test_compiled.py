"""Programs compiled for functions that nobody uses any more are dropped."""

import gc

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import _compiled, dynamics, losses, measures, until

X, Y = np.arange(12.0).reshape(4, 3), np.arange(4.0)


def fresh(i):
    return steppe.Problem(lambda w, x: jnp.tanh(x @ w) + i, np.ones(3), X, Y, losses.mse)


def programs():
    gc.collect()
    return len(jax.devices()[0].client.live_executables())


def test_a_sweep_over_functions_keeps_few_programs():
    """Each function kept 3.5 MB and more: the programs of every measure of it."""
    in_use, left = [], []
    for _ in range(3):
        p = fresh(-1)
        measures.sharpness(p)
        steppe.run(p, dynamics.GD(0.01), stop=until.steps(3))
        in_use.append(programs())
        others = [fresh(i) for i in range(_compiled.KINDS)]
        left.append(programs())
        assert len({hash(q.predict) for q in others}) == _compiled.KINDS
    # The first round also compiles what depends on no function.
    assert left[2] == left[1] < in_use[1] == in_use[2]


def test_problems_of_one_kind_count_once():
    _compiled.clear()
    net = steppe.networks.TwoLayer()
    params = net.init(3, 2, np.random.default_rng(0), np.float64)
    for shift in range(3):
        steppe.Problem(net, params, X + shift, Y, losses.mse)
    assert len(_compiled._kinds) == 1


def test_a_user_s_own_program_stays():
    traces = []

    @jax.jit
    def mine(x):
        traces.append(x)
        return x + 1

    mine(1.0)
    others = [fresh(i) for i in range(2 * _compiled.KINDS)]
    mine(2.0)
    assert len(others) == 2 * _compiled.KINDS
    assert len(traces) == 1
