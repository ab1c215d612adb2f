"""The explorable pages agree with the library: their JavaScript is run by node on shared numbers."""

import json
import shutil
import subprocess
from importlib.resources import files

import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import dynamics, losses, measures, until
from steppe.networks import TwoLayer
from steppe.papers.mulayoff2021 import theory

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
ULPS = 1e-12  # sums of some 10² terms in another order


def node(module, expression, **given):
    """The value of a JavaScript expression in which `m` is the module and `given` are variables."""
    folder = files("steppe.report") / "static" / "explore"
    scripts = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("plot.js", f"{module}.js"))
    names = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    program = f"{scripts}\nconst m = steppe.{module};\n{names}process.stdout.write(JSON.stringify({expression}));"
    done = subprocess.run([NODE, "-e", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_diagonal():
    x, y, w, rate = [1.0, 2.2], 2.0, [0.75, 0.06], 0.12
    problem = steppe.Problem(lambda w, x: x @ w**2, jnp.array(w), jnp.array([x]), jnp.array([y]), losses.half_mse)
    run = steppe.run(problem, dynamics.GD(rate), stop=until.steps(50))
    found = node("diagonal", "m.descend(x, y, w, rate, {goal: -1, most: 50}).path.at(-1)", x=x, y=y, w=w, rate=rate)
    np.testing.assert_allclose(found, run.w, rtol=ULPS)
    sharpness = measures.sharpness(problem, run.w).value
    np.testing.assert_allclose(
        node("diagonal", "m.sharpness(x, y, w)", x=x, y=y, w=list(map(float, run.w))), sharpness, rtol=1e-6
    )
    (critical,) = steppe.critical_rate(problem, losses=[1e-8])
    np.testing.assert_allclose(node("diagonal", "m.critical(x, y, w)", x=x, y=y, w=w), float(critical.rate), rtol=1e-2)


def test_relu():
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.normal(size=6)), rng.normal(size=6)
    p = {"w1": rng.normal(size=7), "b1": rng.normal(size=7), "w2": rng.normal(size=7), "b2": 0.3}
    plain = {name: np.asarray(value).tolist() for name, value in p.items()}

    def predict(p, x):
        return jnp.maximum(x[:, None] * p["w1"][None] + p["b1"][None], 0) @ p["w2"] + p["b2"]

    params = {name: jnp.asarray(value) for name, value in p.items()}
    problem = steppe.Problem(predict, params, jnp.asarray(x), jnp.asarray(y), losses.half_mse)
    given = {"p": plain, "x": x.tolist(), "y": y.tolist()}
    np.testing.assert_allclose(node("relu", "m.loss(p, x, y)", **given), problem.loss(problem.w0), rtol=ULPS)
    run = steppe.run(problem, dynamics.GD(0.01), stop=until.steps(20))
    moved = node("relu", "Array.from({length: 20}).reduce((q) => m.moved(q, m.gradient(q, x, y), -0.01), p)", **given)
    end = problem.unravel(run.w)
    for name, value in moved.items():
        np.testing.assert_allclose(value, end[name], rtol=1e-10, atol=1e-12)
    top = node("relu", "m.sharpness(p, x, y, {steps: 3000}).value", **given)
    np.testing.assert_allclose(top, measures.sharpness(problem).value, rtol=1e-4)
    f = theory.piecewise_linear({"W1": p["w1"][:, None], "b1": p["b1"], "W2": p["w2"], "b2": np.asarray(p["b2"])})
    np.testing.assert_allclose(node("relu", "m.roughness(p, x)", **given), theory.weighted_roughness(f, x), rtol=1e-10)


def test_rescaling():
    rng = np.random.default_rng(1)
    points, W, a = rng.normal(size=(30, 3)), rng.normal(size=(6, 3)), rng.normal(size=6)
    given = {"p": {"W": W.tolist(), "a": a.tolist()}, "points": points.tolist()}

    def predict(p, x):
        return jnp.maximum(x @ p["W"].T, 0) @ p["a"]

    params = {"W": jnp.asarray(W), "a": jnp.asarray(a)}
    problem = steppe.Problem(predict, params, jnp.asarray(points), jnp.zeros(30), losses.half_mse)
    trace = measures.trace(problem).parts["gauss_newton"].value
    np.testing.assert_allclose(node("rescaling", "m.trace(p, points)", **given), trace, rtol=1e-10)
    flattened = steppe.flatten(problem, problem.w0)
    np.testing.assert_allclose(node("rescaling", "m.least(p, points)", **given), flattened.value, rtol=1e-6)
    reached = node("rescaling", "m.trace(m.rescaled(p, m.flattest(p, points)), points)", **given)
    np.testing.assert_allclose(reached, flattened.value, rtol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
def test_xor(bias):
    rng = np.random.default_rng(2)
    d, width = 5, 8
    x, y = rng.choice([-1.0, 1.0], size=(1, d)), np.array([1.0])
    p = {"W1": rng.normal(size=(width, d)), "b1": rng.normal(size=width), "W2": rng.normal(size=width)}
    if not bias:
        del p["b1"]
    problem = steppe.Problem(TwoLayer(bias=bias), {k: jnp.asarray(v) for k, v in p.items()}, x, y, losses.mse)
    run = steppe.run(problem, dynamics.SAM(0.01, 0.05), stop=until.steps(20))
    plain = {"W1": p["W1"].tolist(), "b1": p["b1"].tolist() if bias else None, "W2": p["W2"].tolist()}
    given = {"p": plain, "x": x[0].tolist(), "y": float(y[0])}
    moved = node("xor", "(() => { for (let k = 0; k < 20; k++) m.step(p, x, y, 0.01, 0.05); return p; })()", **given)
    end = problem.unravel(run.w)
    for name in p:
        np.testing.assert_allclose(moved[name], end[name], rtol=1e-10, atol=1e-12)
    trace = measures.trace(problem).value
    np.testing.assert_allclose(node("xor", "m.trace(p, [x])", **given), trace, rtol=1e-10)
