import jax
import numpy as np
import pytest
from cases.kernel_family import callable_part

from steppe import losses
from steppe.kernels import elementary as own_losses

value, slope = callable_part(own_losses.value), callable_part(own_losses.slope)


@pytest.mark.parametrize("loss", [losses.mse, losses.half_mse, losses.logistic(smoothing=0.2), losses.logistic()])
def test_value_and_slope_are_those_of_the_loss(loss):
    own = own_losses.loss_of(loss, np.float64)
    for y in (1.0, -1.0):
        for f in (0.0, 0.3, -2.0, 40.0, -40.0, 800.0, -800.0):
            expected, expected_slope = jax.value_and_grad(lambda f, y=y: loss.example(f, y))(f)
            # A few units in the last place, and e⁻⁷⁰⁸ where ours ends.
            np.testing.assert_allclose(value(own, f, y), expected, rtol=1e-14, atol=1e-300)
            np.testing.assert_allclose(slope(own, f, y), expected_slope, rtol=1e-14, atol=1e-300)


def test_unknown_losses_have_no_kernel():
    assert own_losses.loss_of(losses.cross_entropy, np.float64) is None


@pytest.mark.parametrize("loss", [losses.mse, losses.logistic(), losses.logistic(smoothing=0.2)])
@pytest.mark.parametrize("f", [np.inf, -np.inf, np.nan])
def test_a_prediction_that_is_not_finite_has_no_finite_loss(loss, f):
    assert not np.isfinite(value(own_losses.loss_of(loss, np.float64), f, 1.0))
