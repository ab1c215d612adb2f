"""What rescaling cannot change
============================

A rescaling of neurons can make sharpness anything (Dinh et al. 2017), but not its least value over rescalings.

Draws both for four networks, to the path in the first argument or to build/.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steppe
from steppe import figures
from steppe.flattening import Neurons, rescaled

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


def dense(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["W"].T + layer.get("b", 0.0))
    return x @ params[-1]["W"].T


def convolutional(params, x):
    h = jax.nn.relu(jax.lax.conv(x, params[0]["W"], (1, 1), "VALID") + params[0]["b"][:, None, None])
    return h.reshape(len(x), -1) @ params[1]["W"].T


def residual(params, x):
    h = x @ params["in"].T
    h = h + jax.nn.relu(h @ params["up"].T) @ params["down"].T
    return jax.nn.relu(h) @ params["out"].T


def drawn(*shape):
    return rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:] or (100,)))


def chain(bias):
    return [{"W": drawn(m, d)} | ({"b": drawn(m)} if bias else {}) for d, m in ((6, 8), (8, 8), (8, 2))]


# Name: network, parameters, shape of an input, hidden neurons. All layers of the residual stream share one scale.
networks = {
    "fully connected": (dense, chain(bias=False), (6,), None),
    "with biases": (dense, chain(bias=True), (6,), None),
    "convolutional": (convolutional, [{"W": drawn(4, 1, 3, 3), "b": drawn(4)}, {"W": drawn(2, 36)}], (1, 5, 5), None),
    "residual": (
        residual,
        {"in": drawn(8, 6), "up": drawn(5, 8), "down": drawn(8, 5), "out": drawn(2, 8)},
        (6,),
        [Neurons({"in": 0, "down": 0}, {"up": 1, "out": 1}), Neurons({"up": 0}, {"down": 1})],
    ),
}


panels = []
for name, (network, params, inputs, layers) in networks.items():
    x = rng.normal(size=(12, *inputs))
    problem = steppe.Problem(network, params, x, network(params, x), steppe.losses.half_mse)  # every example fitted
    best = steppe.flatten(problem, problem.w0, layers=layers)
    panel = {"title": name, "factors": np.geomspace(1, 1e3, 7).tolist()}
    panel |= {measure: {"plain": [], "invariant": []} for measure in ("sharpness", "trace")}
    for largest in panel["factors"]:
        scales = [largest ** rng.uniform(-1, 1, len(layer)) for layer in best.scales]
        w = rescaled(problem, problem.w0, best.layers, scales)
        assert jnp.allclose(problem.predictions(w), problem.y, rtol=0, atol=1e-12 * np.max(np.abs(problem.y)))
        for measure in ("sharpness", "trace"):
            least = steppe.flatten(problem, w, measure=measure, layers=layers)
            panel[measure]["plain"].append(least.before)
            panel[measure]["invariant"].append(least.value)
    panels.append(panel)
    # The measures give the same numbers at the last rescaling.
    assert np.isclose(steppe.measures.trace(problem, w).value, panel["trace"]["plain"][-1], rtol=1e-6)
    assert steppe.measures.invariant_trace(problem, w, layers=layers).value == panel["trace"]["invariant"][-1]
    low, *_, high = sorted(panel["sharpness"]["plain"])
    print(f"{name}: λ_max from {low:.3g} to {high:.3g},", end=" ")
    print(f"least over rescalings {least.value:.6g} for the trace, {panel['sharpness']['invariant'][-1]:.6g} for λ_max")

numbers = {"title": "One function, many parameters: rescaling moves flatness, not its least value", "panels": panels}
stem = Path(sys.argv[1] if len(sys.argv) > 1 else "build/flatten_what_rescaling_cannot_change")
print("wrote", *figures.save(figures.rescaling(numbers), numbers, stem))

for panel in panels:
    for measure in ("sharpness", "trace"):
        plain, invariant = (np.asarray(panel[measure][kind]) for kind in ("plain", "invariant"))
        assert plain.max() > 1e3 * plain.min()
        assert np.ptp(invariant) < 1e-6 * invariant.min()
