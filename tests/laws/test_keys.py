"""Whatever is random takes one `key`: a whole number of any size, or a key of jax.random of either kind."""

import jax
import numpy as np
import pytest
from cases.problems import two_layer

import steppe
from steppe import Accuracy, measures, rates, until
from steppe.check import ArgumentError
from steppe.dynamics import GD, SAM, LabelNoise, run_many

NOISY = LabelNoise(GD(0.01), 0.1)
ONE = two_layer()


def run(dynamics):
    return lambda key: steppe.run(ONE, dynamics, stop=until.steps(4), key=key).w


RANDOM = {
    "1-SAM": run(SAM(0.01, 0.1)),
    "batches": run(GD(0.01, batch_size=2)),
    "label noise": run(NOISY),
    "run_many": lambda key: run_many(ONE, NOISY, w=np.stack([ONE.w0] * 2), stop=until.steps(4), key=key).w,
    "random direction": lambda key: (
        measures.random_direction_sharpness(ONE, accuracy=Accuracy(0.1, max_matvecs=128), key=key).value
    ),
    "sharpness": lambda key: measures.sharpness(ONE, accuracy=Accuracy(0.1), key=key).value,
    "tracker": lambda key: measures.Tracker(accuracy=Accuracy(0.1), key=key)(ONE).value,
    "critical_rate": lambda key: steppe.critical_rate(ONE, losses=[1e3], key=key)[0].initial_sharpness,
    "sweep": lambda key: rates.sweep(ONE, [1e-3], goals=[1e3], key=key).ends["sharpness"],
}


@pytest.mark.parametrize("name", RANDOM)
def test_every_kind_of_key(name):
    """The words of a key have 64 bits in all; with the highest one set they are no signed number."""
    random = RANDOM[name]
    same = [np.asarray(random(key)) for key in (5, np.int64(5), jax.random.key(5), jax.random.PRNGKey(5))]
    for other in same[1:]:
        np.testing.assert_array_equal(same[0], other)
    high = np.array([2**32 - 1, 7], dtype=np.uint32)
    wide = [2**64 + 3, jax.random.wrap_key_data(high), high, *jax.random.split(jax.random.key(0), 3)]
    found = [np.asarray(random(key)) for key in wide]
    assert all(np.isfinite(value).all() for value in found)
    np.testing.assert_array_equal(found[1], found[2])


def test_many_keys_at_once():
    """A list, an array of whole numbers, and keys that jax.random has split."""
    start = np.stack([ONE.w0] * 3)
    wanted = [np.asarray(run(NOISY)(key)) for key in (1, 2, 3)]
    for keys in ([1, 2, 3], np.arange(1, 4), range(1, 4), jax.vmap(jax.random.key)(np.arange(1, 4))):
        found = run_many(ONE, NOISY, w=start, stop=until.steps(4), key=keys).w
        np.testing.assert_allclose(found, wanted, rtol=1e-11)  # a batch rounds differently


@pytest.mark.parametrize("key", [-1, 1.5, "a", None, True])
@pytest.mark.parametrize("name", RANDOM)
def test_no_key(name, key):
    with pytest.raises(ArgumentError, match="key must be"):
        RANDOM[name](key)
