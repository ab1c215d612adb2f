"""Laws of every network: each public class has a case, and equal descriptions and seeds give equal problems."""

import copy

import jax
import numpy as np
import pytest
from cases.problems import NETWORKS, network_classes


def test_every_public_class_has_a_case():
    missing = network_classes() - {type(make().predict) for make in NETWORKS.values()}
    assert not missing, "add a case to the folder `tests/cases`"


@pytest.mark.parametrize("name", NETWORKS)
def test_equal_networks_share_compiled_code(name):
    """Equal and of equal hash, which is what the compiler's cache asks; the same seed draws the same parameters."""
    first, second = NETWORKS[name](), NETWORKS[name]()
    assert first.predict == second.predict == copy.deepcopy(first.predict)
    assert jax.tree.structure(first) == jax.tree.structure(second)
    assert hash(jax.tree.structure(first)) == hash(jax.tree.structure(second))
    np.testing.assert_array_equal(first.w0, second.w0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_follows_the_parameters(name, dtype):
    p = NETWORKS[name](dtype=dtype)
    assert p.w0.dtype == jax.eval_shape(p.predictions, p.w0).dtype == jax.eval_shape(p.loss, p.w0).dtype == dtype
