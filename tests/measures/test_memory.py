"""60,000 examples of the size of MNIST and a million parameters, within 4 GB: measured in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np, jax.numpy as jnp
import steppe
from steppe import measures

rng = np.random.default_rng(0)
sizes = (784, 1024, 200, 10)

def predict(params, x):
    for W in params[:-1]:
        x = jnp.tanh(x @ W)
    return x @ params[-1]

params = [rng.standard_normal((a, b), dtype=np.float32) / a**0.5 for a, b in zip(sizes, sizes[1:])]
x = rng.random((60_000, 784), dtype=np.float32) - 0.5
problem = steppe.Problem(predict, params, x, rng.integers(0, 10, 60_000), steppe.losses.cross_entropy)
assert problem.w0.size > 1_000_000
estimate = measures.sharpness(problem, accuracy=steppe.Accuracy(1e-3, max_matvecs=1))
assert estimate.matvecs == 1 and estimate.value > 0
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 2**20)
"""


# That of getrusage would be the peak of the process that started it, if that was larger.
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_mnist_and_a_million_parameters_within_four_gigabytes():
    # As users compile: the tests' own flags leave out the fusion that saves memory.
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment)
    assert float(done.stdout) < 4.0
