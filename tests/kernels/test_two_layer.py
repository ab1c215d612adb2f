import numpy as np
import pytest
from cases.problems import tanh_net, two_layer

import steppe
from steppe import kernels, losses
from steppe.dynamics import GD, SAM
from steppe.kernels.two_layer import TwoLayerKernel


@pytest.mark.parametrize("dynamics", [GD(0.1), GD(0.1, batch_size=2), SAM(0.1, 0.1)])
@pytest.mark.parametrize("loss", [losses.mse, losses.half_mse, losses.logistic(smoothing=0.1)])
def test_chosen_where_it_fits(dynamics, loss):
    assert isinstance(kernels.build(two_layer(loss=loss), dynamics.recipe()), TwoLayerKernel)


def test_not_chosen_elsewhere():
    assert kernels.build(tanh_net(), GD(0.1).recipe()) is None
    p = two_layer()
    wrapped = steppe.Problem(lambda a, x: p.predict(a, x), p.unravel(p.w0), p.x, p.y, p.loss_function)
    assert kernels.build(wrapped, GD(0.1).recipe()) is None


@pytest.mark.parametrize("bias", [True, False])
def test_position_of_start_is_the_same_vector(bias):
    p = two_layer(bias=bias, width=100)
    path = kernels.build(p, GD(0.1).recipe())
    np.testing.assert_array_equal(path.position(path.start(p.w0)), p.w0)


def test_advance_leaves_its_argument_alone():
    p = two_layer()
    path = kernels.build(p, GD(0.1).recipe())
    state = path.start(p.w0)
    path.advance(state, None, first=0, offset=0, count=5, target=-1.0)
    np.testing.assert_array_equal(path.position(state), p.w0)
