import numpy as np
import pytest
from cases.kernel_family import FIRST, KEY, advance, build, orders_of, problem
from oracles import kernel_oracle as oracle

from steppe import losses
from steppe.activations import leaky_relu, softplus
from steppe.dynamics import GD, SAM, Projected
from steppe.kernels.three_layer import ThreeLayerKernel
from steppe.kernels.three_layer_relu import ThreeLayerReLUKernel
from steppe.networks import MLP

# 1 − ηλ is 0.8 or 0.5: the factor κ of W₂ falls below ½ every few steps, and is multiplied into the weights.
DECAYING = [
    GD(0.01, batch_size=1, weight_decay=20.0),
    SAM(0.01, 0.1, weight_decay=50.0),
    Projected(SAM(0.01, 0.1, weight_decay=20.0), FIRST, 3.0),
]


@pytest.mark.parametrize("move", DECAYING)
@pytest.mark.parametrize("width", [1, 3, 70])
def test_decay_kept_as_a_factor_is_the_decay_of_the_weights(move, width):
    p = problem(lambda x: MLP(3), width=width, loss=losses.half_mse)
    path = build(p, move)
    assert isinstance(path, ThreeLayerReLUKernel)
    whole = advance(path, p, move, 12)[0]
    # 12 steps, each with sums of at most 70 numbers around 1: some 1,000 units in the last place.
    exact = oracle.train(p, move, orders_of(p, move), 12, KEY)
    np.testing.assert_allclose(whole, exact, atol=1000 * np.finfo(float).eps)
    for cut in range(1, 6):
        np.testing.assert_array_equal(advance(path, p, move, 12, cut=cut)[0], whole)


def test_chosen_where_neurons_can_be_silent_and_the_factor_survives():
    one, relu = SAM(0.01, 0.1), problem(lambda x: MLP(3))
    assert isinstance(build(relu, one), ThreeLayerReLUKernel)
    for other in (
        problem(lambda x: MLP(3, activation=leaky_relu(0.1))),
        problem(lambda x: MLP(3, activation=softplus)),
    ):
        assert isinstance(build(other, one), ThreeLayerKernel)
    for move in (SAM(0.01, 0.1, 2), GD(0.01), GD(0.01, batch_size=1, weight_decay=100.0)):
        assert isinstance(build(relu, move), ThreeLayerKernel)
    assert isinstance(build(problem(lambda x: MLP(3), n=1), one), ThreeLayerKernel)
