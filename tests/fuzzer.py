"""A fuzzer of the public API: every public function and class by reflection, every argument in turn a hostile value.

Three outcomes are accepted: a result, an error of ours that explains itself, and the exception of a function that the
caller passed. `python tests/fuzzer.py` tries all values, the tests a share of them.
"""

import contextlib
import enum
import functools
import inspect
import itertools
import os
import pathlib
import signal
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from laws.test_names import MODULES, shown

import steppe
from steppe._result import Result
from steppe.check import ArgumentError
from steppe.data import DataError
from steppe.flattening import NoInterpolatorError
from steppe.store import StoreError


class OwnError(Exception):
    """What a function of the caller raises."""


def failing(*arguments: Any, **options: Any) -> Any:
    raise OwnError


class Odd:
    """An object without any abilities."""

    __slots__ = ()
    __hash__ = None

    def __repr__(self) -> str:
        return "Odd()"


SECONDS = 20
ERRORS = (ArgumentError, StoreError, DataError, NoInterpolatorError, OwnError)
HOSTILE: list[Any] = [
    None, True, -1, 0, 2.5, 10**400, 1e300, 1e-300, float("nan"), float("inf"), 1j, "", "a/b", "\0", b"x", [], {},
    [[1], [1, 2]],
    np.zeros(0), np.zeros((2, 2)), np.full(3, np.nan), np.array(["a", "b"]), np.array([1, None]), np.ones(3, complex),
    np.array(3), jnp.ones(3), object, Odd(), failing, {"a": 1}, {1, 2}, (), iter(()), pathlib.Path("nothing"),
]  # fmt: skip


def problem() -> steppe.Problem:
    x = np.arange(12.0).reshape(4, 3) / 7
    return steppe.Problem(_line, np.array([0.5, -0.2, 0.1]), x, np.ones(4), steppe.losses.half_mse)


def _line(w: Any, x: Any) -> Any:
    return x @ w


class Target(NamedTuple):
    """Something public that can be called, and a call of it that is right."""

    name: str
    call: Callable[..., Any]
    base: dict[str, Any]


def callables() -> Iterator[tuple[str, Any]]:
    """Functions and classes of all public modules, each once. Results, protocols, bases and errors are not made by
    the caller."""
    seen: set[int] = set()
    for module in sorted(MODULES):
        for name, value in shown(MODULES[module]).items():
            if inspect.ismodule(value) or not callable(value) or id(value) in seen:
                continue
            seen.add(id(value))
            kind = inspect.isclass(value)
            if kind and (
                issubclass(value, Result | BaseException | enum.Enum | tuple)
                or inspect.isabstract(value)
                or getattr(value, "_is_protocol", False)
            ):
                continue
            try:
                inspect.signature(value)
            except (TypeError, ValueError):  # the name of a type
                continue
            if not f"{module}.{name}".startswith(NOT_CALLED):
                yield f"{module}.{name}", value


# Arguments that are right for every function with a parameter of that name; what differs is in `OWN`.
X, Y = np.arange(12.0).reshape(4, 3) / 7 - 0.5, np.array([1.0, -1.0, 1.0, -1.0])
NAMED: dict[str, Callable[[], Any]] = {
    "problem": problem, "w": lambda: np.array([0.5, -0.2, 0.1]), "key": lambda: 0, "p": lambda: 3, "k": lambda: 1,
    "matvec": lambda: lambda v: np.array([1.0, 2.0, 3.0]) * v, "rng": lambda: np.random.default_rng(0), "x": lambda: X,
    "y": lambda: Y, "A": lambda: np.diag([1.0, 2.0, 3.0]), "dynamics": lambda: steppe.dynamics.GD(0.1),
    "lr": lambda: 0.1,
    "stop": lambda: steppe.until.steps(3), "rho": lambda: 0.1, "sigma": lambda: 0.1, "names": lambda: {"a"},
    "loss": lambda: steppe.losses.half_mse, "n": lambda: 4, "d": lambda: 3, "test": lambda: 2, "batch_size": lambda: 2,
    "accuracy": lambda: steppe.Accuracy(0.1), "activation": lambda: steppe.activations.relu, "momentum": lambda: 0.5,
    "leak": lambda: 0.1, "c": lambda: 2, "h": lambda: jnp.ones(3), "z": lambda: np.ones(3), "argument": lambda: "a",
    "start": lambda: np.ones(3), "steps": lambda: 3, "step": lambda: np.ones(3), "train": lambda: X, "eps": lambda: 0.5,
    "store": lambda: steppe.Store("runs"), "scale": lambda: "smoke", "predictions": lambda: jnp.ones((4, 2)),
    "targets": lambda: jnp.ones((4, 2)), "statistics": steppe.curvature.FullBatch, "memory": lambda: 2**20,
    "curvature": lambda: steppe.curvature.hessian, "depth": lambda: 2, "rtol": lambda: 1e-2, "count": lambda: 3,
    "params": lambda: {"a": np.ones(3)}, "classes": lambda: 2, "record": lambda: {"trace": steppe.measures.trace},
    "when": lambda: steppe.when.every(steps=2), "out": lambda: "out", "workers": lambda: 1, "radius": lambda: 0.1,
    "separation": lambda: steppe.flattening.separating.separate(X[[0, 3]]), "probability": lambda: 0.1,
    "spread": lambda: 0.1,
    "numbers": dict, "value": lambda: 2, "values": lambda: [1, 2], "weights": lambda: np.ones(2),
    "theta_min": lambda: 0.5,
}  # fmt: skip


def exponents() -> Any:
    return steppe.flattening.exponents([-1, 0], [0, -1], 1)


def rescaling() -> Any:
    return steppe.flattening.Rescaling(np.array([[1.0, 2.0]]), exponents())


def relu_net() -> steppe.Problem:
    params = steppe.networks.TwoLayer(bias=False).init(3, 2, np.random.default_rng(0), np.float64)
    return steppe.Problem(steppe.networks.TwoLayer(bias=False), params, X, Y, steppe.losses.mse)


def neurons() -> Any:
    return steppe.flattening.Neurons({"W1": 0}, {"W2": 0})


def ends() -> dict[str, Any]:
    rates = np.arange(1, 13) / 4
    return {"lr": rates, "sharpness": np.minimum(8.0, 8.8 / np.arange(1, 13)), "outcome": np.array(["reached"] * 12)}


def audit() -> Any:
    from cases.planted_audits import planted

    return planted(sharpness=2.0)


def figure() -> Any:
    from steppe.experiments import Figure

    return Figure("toy", "fig1", "a figure", {"smoke": ()}, shown_curve())


def shown_curve() -> Any:
    from steppe.experiments import Shown
    from steppe.figures import panels

    return Shown(lambda runs: {"title": "t", "panels": []}, panels)


def claim() -> Any:
    from steppe.experiments import Claim, Finding

    return Claim("c", "Figure 1", "A statement.", "1", lambda: Finding(1.0, True))


def paper() -> Any:
    from steppe.experiments import Paper

    return Paper("toy", "A paper", module="toy_specs", claims=[claim()])


def toy() -> Any:
    from cases.toy_specs import Count

    return Count(3)


def network() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1)).double()


def tensors() -> Any:
    import torch

    return torch.as_tensor(X), torch.as_tensor(Y)[:, None]


def torch_case() -> dict[str, Any]:
    import torch

    model = network()
    return {"model": model, "data": tensors(), "loss": torch.nn.MSELoss(),
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}  # fmt: skip


def some(case: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: case[name] for name in names}


def nothing(*arguments: Any, **options: Any) -> None:
    """A function of the caller that returns nothing."""


OWN: dict[str, Callable[[], dict[str, Any]]] = {
    "steppe.Problem": lambda: {"predict": _line, "params": np.ones(3)},
    "steppe.Estimate": lambda: {"value": 1.0, "lower": 0.5, "upper": 2.0},
    "steppe.Accuracy": lambda: {"rtol": 0.1, "confidence": 0.9, "max_matvecs": 30},
    "steppe.audit": lambda: {"model": problem(), "data": None, "loss": None, "optimizer": None, "seconds": 1.0},
    "steppe.critical_rate": lambda: {"losses": [0.1]},
    "steppe.flatten": lambda: {"problem": relu_net(), "w": relu_net().w0, "measure": "trace", "layers": [neurons()]},
    "steppe.activations.Activation": lambda: {"name": "a", "value": jnp.tanh, "slope": jnp.cos, "curvature": jnp.sin},
    "steppe.activations.Homogeneous": lambda: {"positive": 1.0, "negative": 0.0, "degree": 1.0},
    "steppe.auditing.Adam": lambda: {"nu": np.ones(3)},
    "steppe.auditing.Block": lambda: {"name": "a", "arrays": 1, "size": 1, "norm": 1.0, "trace": None,
    "sharpness": None},
    "steppe.auditing.Check": lambda: {"name": "a", "verdict": "holds", "detail": ""},
    "steppe.auditing.Edge": lambda: {"limit": abs, "text": "a"},
    "steppe.auditing.Row": lambda: {"name": "a", "label": "b", "estimate": None},
    "steppe.auditing.at": lambda: {"model": network(), "path": saved_network()},
    "steppe.auditing.compare": lambda: {"audits": [audit(), audit()]},
    "steppe.check.converted": lambda: {"values": [1.0], "dtype": float},
    "steppe.check.finite": lambda: {"array": [1.0]},
    "steppe.check.integer": lambda: {"minimum": 0},
    "steppe.check.integers": lambda: {"minimum": 0, "remedy": "r", "values": [1]},
    "steppe.check.numbers": lambda: {"values": [1], "rule": "a", "remedy": "r"},
    "steppe.check.suggest": lambda: {"name": "a", "known": ["b"]},
    "steppe.curvature.Curvature": lambda: {"name": "a", "model": nothing},
    "steppe.curvature.Operator": lambda: {"product": abs, "size": 3, "dtype": np.float64, "name": "a"},
    "steppe.curvature.PerChunk": lambda: {"size": 2},
    "steppe.curvature.gram": lambda: {"curvature": steppe.curvature.gauss_newton},
    "steppe.data.Dataset": lambda: {"name": "a", "x_test": X, "y_test": Y},
    "steppe.data.gaussian_mixture": lambda: {"centres": X, "labels": Y},
    "steppe.data.multi_index": lambda: {"link": steppe.data.links.Linear(), "U": np.eye(1, 3)},
    "steppe.data.one_hot": lambda: labels(), "steppe.data.signed_one_hot": lambda: labels(),
    "steppe.data.standardised_class": lambda: labels(),
    "steppe.data.orthonormal": lambda: {"r": 2}, "steppe.data.parity": lambda: {"coordinates": (0, 1)},
    "steppe.data.overall": lambda: images(), "steppe.data.per_channel": lambda: images(),
    "steppe.data.per_feature": lambda: images(),
    "steppe.data.links.Composed": lambda: {"outer": abs, "inner": steppe.data.links.Linear()},
    "steppe.data.links.Polynomial": lambda: {"activation": steppe.activations.rectifier, "coefficients": (1.0,)},
    "steppe.data.links.SumOfSingleIndex": lambda: {"activation": steppe.activations.rectifier},
    "steppe.data.links.QuadraticForm": lambda: {"matrix": ((1.0,),)},
    "steppe.dynamics.Decayed": lambda: {"shrink": 0.1}, "steppe.dynamics.Projected": lambda: {"norm": 1.0},
    "steppe.dynamics.Optax": lambda: {"transformation": __import__("optax").sgd(0.1)},
    "steppe.dynamics.Progress": lambda: {"epoch": 1.0, "epochs": 2.0, "steps_per_second": 1.0, "latest": {}},
    "steppe.dynamics.Schedule": lambda: {"stages": (steppe.dynamics.Stage(steppe.dynamics.GD(0.1)),)},
    "steppe.dynamics.minima": lambda: {
        "x": [0.0], "y": [1.0], "lr": [0.1], "max_steps": 3, "loss": 0.1,
        "start": {"W1": [[1.0]], "b1": [1.0], "W2": [0.0], "b2": 0.0},
    },
    "steppe.dynamics.run_many": lambda: {"dynamics": steppe.dynamics.GD([0.1, 0.2])},
    "steppe.experiments.Claim": lambda: vars(claim()), "steppe.experiments.Figure": lambda: vars(figure()),
    "steppe.experiments.Drawing": lambda: {"out": pathlib.Path("out")},
    "steppe.experiments.Finding": lambda: {"measured": 1.0, "holds": True},
    "steppe.experiments.Measured": lambda: measured(),
    "steppe.experiments.Paper": lambda: {"id": "a", "title": "b", "module": "c"},
    "steppe.experiments.Shown": lambda: {"numbers": nothing, "draw": nothing},
    "steppe.experiments.expected_seconds": lambda: {"figure": figure()},
    "steppe.experiments.experiment": lambda: {"kind": "a"},
    "steppe.experiments.labelled_runs": lambda: {"figure": figure()},
    "steppe.experiments.measure": lambda: {"paper": paper(), "claim": claim()},
    "steppe.experiments.measure_all": lambda: {"claims": [(paper(), claim())]},
    "steppe.experiments.override": lambda: {"spec": toy(), "changes": ["n=3"]},
    "steppe.experiments.reproduce": lambda: {"figure": figure()},
    "steppe.experiments.runs_needed": lambda: {"claims": [claim()]},
    "steppe.experiments.seeds": lambda: {"experiment": seeded()},
    "steppe.experiments.update_expected_seconds": lambda: {"figures": []},
    "steppe.experiments.verify": lambda: {"paper": paper()},
    "steppe.experiments.write": lambda: {"figure": figure(), "runs": [], "out": pathlib.Path("out")},
    "steppe.figures.png": lambda: {"figure": drawn()},
    "steppe.figures.save": lambda: {"figure": drawn(), "numbers": {}, "stem": pathlib.Path("picture")},
    "steppe.figures.series": lambda: {"kind": "line", "colour": "blue"},
    "steppe.flattening.Neurons": lambda: {"into": {"a": 0}, "out": {"b": 0}},
    "steppe.flattening.Rescaling": lambda: {"jacobian": np.array([[1.0, 2.0]]), "exponents": exponents()},
    "steppe.flattening.balance": lambda: {"exponents": exponents()},
    "steppe.flattening.merged": lambda: {"exponents": exponents()},
    "steppe.flattening.lower_bound": lambda: {"exponents": exponents(), "t": np.zeros(1)},
    "steppe.flattening.exponents": lambda: {"src": [-1, 0], "dst": [0, -1], "units": 1},
    "steppe.flattening.features": lambda: {"W": np.ones((2, 3)), "activation": steppe.activations.rectifier},
    "steppe.flattening.flattest": lambda: {"form": rescaling()},
    "steppe.flattening.flattest_interpolator": lambda: {"phi": np.eye(4), "q": np.ones(4), "p": 1.0},
    "steppe.flattening.rescaled": lambda: {
        "problem": relu_net(), "w": relu_net().w0, "layers": [neurons()], "scales": [np.ones(2)]
    },
    "steppe.flattening.memorising.deep": lambda: {"x": X[[0, 3]], "y": Y[:2], "depth": 3},
    "steppe.flattening.memorising.sim_ln": lambda: {"x": X[[0, 3]], "y": Y[:2], "eps": 0.1},
    "steppe.flattening.memorising.two_layer": lambda: {"x": X[[0, 3]], "y": Y[:2]},
    "steppe.flattening.separating.deep": lambda: {"norm": np.ones(2), "y": Y[:2], "depth": 3},
    "steppe.flattening.separating.sim_ln": lambda: {"norm": np.ones(2), "y": Y[:2], "eps": 0.1},
    "steppe.flattening.separating.first_layer": lambda: {"height": np.ones(2)},
    "steppe.flattening.separating.hypercube": lambda: {"x": np.sign(X)},
    "steppe.flattening.separating.sphere": lambda: {"x": X / np.linalg.norm(X, axis=1, keepdims=True)},
    "steppe.kernels.build": lambda: {"recipe": None},
    "steppe.linalg.in_precision": lambda: {"dtype": np.float32},
    "steppe.linalg.kuczynski_wozniakowski": lambda: {"theta_max": 1.0, "confidence": 0.9},
    "steppe.linalg.dense.density": lambda: {"grid": np.ones(3), "width": 0.1},
    "steppe.losses.Loss": lambda: {"name": "a", "example": nothing, "check_targets": nothing},
    "steppe.losses.cross_entropy": lambda: {"targets": jnp.zeros(4, int)},
    "steppe.losses.logistic": lambda: {"smoothing": 0.1},
    "steppe.measures.Measured": lambda: {"value": 1.0, "lower": 1.0, "upper": 1.0},
    "steppe.measures.KinkedLayer": lambda: dict.fromkeys(("examples", "neurons", "values", "matters"), np.ones(1)) 
    | {"name": "a"},
    "steppe.measures.norm": lambda: {"order": 2}, "steppe.measures.adaptive_sharpness": lambda: sampled(),
    "steppe.measures.random_direction_sharpness": lambda: sampled(),
    "steppe.measures.invariant_trace": lambda: {"problem": relu_net(), "w": relu_net().w0, "layers": [neurons()]},
    "steppe.measures.invariant_sharpness": lambda: {"problem": relu_net(), "w": relu_net().w0, "layers": [neurons()]},
    "steppe.networks.Scaled": lambda: {"name": "a", "power": 1.0},
    "steppe.networks.build": lambda: {
        "network": steppe.networks.FCN((2,)), "data": steppe.data.digits(4, test=2), "scale": 1.0, "seed": 1
    },
    "steppe.networks.convolution": lambda: {"h": jnp.ones((1, 4, 4, 1)), "W": jnp.ones((3, 3, 1, 1))},
    "steppe.networks.diagonal_problem": lambda: {"start": 0.1},
    "steppe.problem.Unravel": lambda: vars(problem().unravel),
    "steppe.problem.ravel": lambda: {"params": np.ones(3)},
    "steppe.rates.Descents": lambda: {
        "limits": steppe.rates.Limits((0.1,)), "w": jnp.ones(3), "share": 0.1, "together": None
    },
    "steppe.rates.Followed": lambda: {"tracker": steppe.linalg.Tracker(3)},
    "steppe.rates.Limits": lambda: {"goals": (0.1,)}, "steppe.rates.Plan": lambda: {"critical": None},
    "steppe.rates.Reached": lambda: {"goal": 0.1, "centre": jnp.ones(3)},
    "steppe.rates.corner": lambda: {"ends": ends(), "critical": 1.0},
    "steppe.rates.summary": lambda: {"ends": ends(), "critical": 1.0},
    "steppe.rates.summary_lines": lambda: {"found": {}},
    "steppe.rates.doomed": lambda: {"steps": [1.0, 2.0], "losses": [1.0, 0.5], "goal": 0.1, "most": 10, "way": 1.0},
    "steppe.rates.draw": lambda: {"found": a_sweep(), "stem": "picture"},
    "steppe.rates.smoothed_maximum": lambda: {"steps": np.ones(3), "values": np.ones(3)},
    "steppe.rates.sweep": lambda: {"rates": [0.05, 3.0], "goals": [0.1]},
    "steppe.rates.transition": lambda: {"rates": ends()["lr"], "values": ends()["sharpness"]},
    "steppe.rates.u_shape": lambda: {"values": np.abs(np.arange(9) - 4.0)},
    "steppe.report.markdown": lambda: {"results": []},
    "steppe.report.page": lambda: {"results": [], "pictures": [], "version": "1"},
    "steppe.store.Checkpoint": lambda: {"path": pathlib.Path("c"), "every_seconds": 1.0},
    "steppe.store.Computed": lambda: {"curves": {}, "params": {}, "result": {}},
    "steppe.store.Entry": lambda: {"folder": pathlib.Path("f"), "about": {}},
    "steppe.store.address": lambda: {"spec": toy()}, "steppe.store.canonical": lambda: {"spec": toy()},
    "steppe.sweep.InThisProcess": lambda: {"watch": nothing}, "steppe.sweep.Processes": lambda: {"watch": nothing},
    "steppe.sweep.execute": lambda: {"specs": [toy()], "watch": nothing},
    "steppe.sweep.map_processes": lambda: {"function": nothing, "items": [1, 2]},
    "steppe.torch.LightningCallback": lambda: {"data": tensors()},
    "steppe.torch.TrainerCallback": lambda: {"data": tensors(), "loss": None},
    "steppe.torch.Monitor": lambda: some(torch_case(), "model", "optimizer", "data", "loss"),
    "steppe.torch.Problem": lambda: some(torch_case(), "model", "data", "loss"),
    "steppe.torch.SAM": lambda: {"base": torch_case()["optimizer"]},
    "steppe.experiments.Own": lambda: {"target": "cases.toy_specs:Count", "code": "a"},
    "steppe.experiments.Planned": lambda: {"points": (), "specs": ()},
    "steppe.experiments.changed": lambda: {"spec": seeded(), "values": {"seed": 1}},
    "steppe.experiments.own": lambda: {"target": "cases.toy_specs:Count"},
    "steppe.experiments.planned": lambda: {"base": seeded(), "axes": steppe.sweep.Axes(())},
    "steppe.experiments.sweep": lambda: {"base": seeded(), "axes": steppe.sweep.Axes(())},
    "steppe.flattening.Layer": lambda: {"into": {}, "degree": 1.0, "exponents": {}},
    "steppe.rates.Family": lambda: {"make": abs, "convention": "a", "limit": nothing},
    "steppe.rates.growth": lambda: {"ends": ends(), "critical": 1.0},
    "steppe.report.Plot": lambda: {"name": "a", "title": "b", "drawing": nothing},
    "steppe.sweep.Axes": lambda: {"points": ()}, "steppe.sweep.Pending": lambda: {"specs": []},
    "steppe.sweep.SweepFile": lambda: {"base": "a", "axes": {}},
    "steppe.sweep.array_script": lambda: {"command": "a", "name": "b", "folder": pathlib.Path("f"), "tasks": 2},
    "steppe.sweep.drive": lambda: {"make": nothing, "pending": steppe.sweep.Pending([], steppe.Store("runs"))},
    "steppe.sweep.linear": lambda: {"first": 1.0, "last": 2.0}, "steppe.sweep.log": lambda: {"first": 1.0, "last": 2.0},
    "steppe.sweep.parse_sweep": lambda: {"text": ""}, "steppe.sweep.read_sweep": lambda: {"path": "a.toml"},
    "steppe.until.loss": lambda: {"value": 0.1},
    "steppe.when.every": lambda: {"steps": 3, "epochs": None},
    "steppe.when.When": dict, "steppe.when.steps": lambda: {"values": [1, 2]},
    "steppe.until.Stop": lambda: {"loss": 0.1},
}  # fmt: skip
# The checks themselves, whose rules are ours; drawings of the numbers that a figure of a paper makes; names of types;
# networks, which are functions of JAX; what connects to a cluster; what sweeps and commands use of the store, which
# knows no checks. The last three are new and wait for a right call in OWN.
NOT_CALLED = (
    "steppe.check.",
    "steppe.figures.",
    "steppe.sweep.Dask",
    "steppe.store.adopt",
    "steppe.store.address_of",
    "steppe.store.collect",
    "steppe.store.flat",
    "steppe.store.garbage",
    "steppe.store.indexed",
    "steppe.store.merge",
    "steppe.store.disk_errors",
    "steppe.store.expected_seconds",
    "steppe.store.files_of",
    "steppe.experiments.Scale",
    "steppe.outcome.Outcome",
    "steppe.networks.vit_",
    "steppe.data.links.Shifted",
    "steppe.flattening.balance",
    "steppe.rates.predicted",
)


def labels() -> dict[str, Any]:
    return {"train": np.array([0, 1]), "test": np.array([1, 0]), "classes": 2}


def images() -> dict[str, Any]:
    return {"train": np.arange(32.0).reshape(2, 4, 4, 1), "test": np.ones((1, 4, 4, 1))}


def sampled() -> dict[str, Any]:
    return {"accuracy": steppe.Accuracy(0.5, max_matvecs=200)}


def measured() -> dict[str, Any]:
    return {"id": "a", "source": "b", "statement": "c", "expected": "d", "measured": 1.0, "verdict": "holds",
            "misprint": False, "scale": "smoke", "seconds": 1.0, "detail": ""}  # fmt: skip


def seeded() -> Any:
    from steppe.experiments import experiment

    return experiment("fuzzer/seeded")(_seeded)()


def _seeded(checkpoint: Any, progress: Any, *, seed: int = 0) -> Any:
    return None


def drawn() -> Any:
    from matplotlib.figure import Figure

    return Figure()


def saved_network() -> str:
    import torch

    torch.save(network().state_dict(), "weights.pt")
    return "weights.pt"


@functools.cache
def a_sweep() -> Any:
    p = steppe.Problem(lambda w, x: w[0] * w[1] * x, np.array([2.0, 0.1]), np.ones(1), np.ones(1), steppe.losses.mse)
    return steppe.rates.sweep(p, [0.05, 3.0], goals=[1e-1])


def targets() -> Iterator[Target]:
    for name, value in callables():
        base = dict(OWN[name]()) if name in OWN else {}
        for p in inspect.signature(value).parameters.values():
            if p.name not in base and p.name in NAMED and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                base[p.name] = NAMED[p.name]()
        yield Target(name, value, base)


class HangsError(Exception):
    """A call took longer than SECONDS."""


def _expired(signum: int, frame: Any) -> None:
    raise HangsError


@contextlib.contextmanager
def limited(seconds: float = SECONDS) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fault(target: Target, arguments: dict[str, Any]) -> str | None:
    """What is wrong with the way in which this call ends; None if nothing is."""
    try:
        with limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = bound(target, arguments)
            if inspect.isgenerator(result):
                list(itertools.islice(result, 10))
    except ERRORS as error:
        return None if isinstance(error, OwnError) or len(str(error)) > 20 else f"unclear: {error}"
    except HangsError:
        return "hangs"
    except Exception as error:
        if any(frame.name == _line.__name__ for frame in traceback.extract_tb(error.__traceback__)):
            return None  # the caller's network cannot use these arrays
        return f"{type(error).__name__}: {error}"
    return None if inspect.isclass(target.call) else misleading(result)


def bound(target: Target, arguments: dict[str, Any]) -> Any:
    """The call with positional-only parameters where they must be."""
    parameters = inspect.signature(target.call).parameters.values()
    first = [arguments[p.name] for p in parameters if p.kind is p.POSITIONAL_ONLY]
    rest = {p.name: arguments[p.name] for p in parameters if p.kind is not p.POSITIONAL_ONLY and p.name in arguments}
    return target.call(*first, **rest)


def misleading(result: Any) -> str | None:
    """An estimate whose interval does not hold its value, or that claims to know NaN."""
    if isinstance(result, steppe.Estimate) and result.converged and not result.lower <= result.value <= result.upper:
        return f"a misleading result: {result}"
    return None


def cases(target: Target) -> Iterator[tuple[str, int]]:
    """Parameter and number of the hostile value, for all parameters."""
    for p in inspect.signature(target.call).parameters.values():
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            # None is no hostile value where it is the default.
            yield from ((p.name, k) for k in range(len(HOSTILE)) if k or p.default is not None)


def share(target: Target, count: int) -> Iterator[tuple[str, int]]:
    """`count` values for each parameter, others for each: all of them come in turn."""
    for name, k in cases(target):
        first = zlib.crc32(f"{target.name} {name}".encode())
        if (k - first) % len(HOSTILE) < count:
            yield name, k


def main(patterns: list[str]) -> None:
    total = bad = 0
    for target in targets():
        if patterns and not any(pattern in target.name for pattern in patterns):
            continue
        if (found := fault(target, target.base)) is not None:
            print(f"{target.name}: the right call fails: {found[:150]}", flush=True)
            continue
        seen: dict[tuple[str, str], list[int]] = {}
        for name, k in cases(target):
            total += 1
            if (found := fault(target, fresh(target) | {name: HOSTILE[k]})) is not None:
                bad += 1
                seen.setdefault((name, found[:90]), []).append(k)
        for (name, found), numbers in seen.items():
            print(f"{target.name}({name}) {numbers}: {found}", flush=True)
    print(f"{bad} of {total}")


def fresh(target: Target) -> dict[str, Any]:
    """The arguments of the right call; those of PyTorch are changed by a call."""
    return OWN[target.name]() if target.name.startswith("steppe.torch") else target.base


if __name__ == "__main__":
    import tempfile

    import jax

    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    os.chdir(tempfile.mkdtemp())
    main(sys.argv[1:])
