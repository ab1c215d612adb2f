"""Every result prints on one screen, is a table of columns, and draws itself."""

import importlib
import inspect
import typing
from collections.abc import Iterator

import numpy as np
import pytest
from cases.planted_audits import planted
from cases.problems import least_squares
from matplotlib.figure import Figure

import steppe
from steppe import auditing, dynamics, flattening, linalg, measures, rates, until
from steppe._result import Result
from steppe.check import ArgumentError
from steppe.dynamics import GD, Flow
from steppe.estimate import Estimate
from steppe.flattening import Neurons

# An estimate is one number with its interval, and prints on one line.
NO_RESULTS = {Estimate}
ROOMS = (
    "auditing",
    "dynamics",
    "flattening",
    "flattening.memorising",
    "flattening.separating",
    "linalg",
    "measures",
    "rates",
)
RNG = np.random.default_rng(0)
LONG = np.arange(10_000.0)


def classes(kind: object) -> Iterator[type]:
    if inspect.isclass(kind):
        yield kind
    for part in typing.get_args(kind):
        yield from classes(part)


def returned() -> set[type]:
    """Our classes in the return types of the public functions, and in the fields of those classes that are results."""
    found: set[type] = set()
    for room in map(importlib.import_module, (f"steppe.{name}" for name in ROOMS)):
        for function in filter(inspect.isroutine, (getattr(room, name) for name in dir(room))):
            found |= set(classes(typing.get_type_hints(inspect.unwrap(function))["return"]))
    return {kind for kind in found if kind.__module__.startswith("steppe")} - NO_RESULTS


def a_run():
    record = {name: lambda p, w: p.loss(w) for name in (f"quantity number {k}" for k in range(30))}
    return steppe.run(least_squares(), GD(0.01), stop=until.steps(40), record=record | {"w": lambda p, w: w})


def a_batch(*, record=True):
    record = {"loss": lambda p, w: p.loss(w)} if record else None
    return dynamics.run_many(least_squares(), GD(np.geomspace(1e-3, 1, 300)), stop=until.steps(3), record=record)


def a_sweep():
    p = steppe.Problem(lambda w, x: w[0] * w[1] * x, np.array([2.0, 0.1]), np.ones(1), np.ones(1), steppe.losses.mse)
    return rates.sweep(p, [0.05, 3.0], goals=[1e-1])


def some_rates():
    return rates.CriticalRates(
        rates.Critical(10.0**-k, "reached", LONG, 1.0 + k, 2.0, 1.0, 3.0, 100 * k) for k in range(3)
    )


def minima():
    start = {"W1": [[1.0]], "b1": [1.0], "W2": [0.0], "b2": 0.0}
    return dynamics.minima([0.0], [1.0], start, np.geomspace(0.01, 0.5, 200), max_steps=3)


def flattened():
    layers = tuple(Neurons({f"W{k}": 0}, {f"W{k + 1}": 1}) for k in range(30))
    scales = tuple(np.exp(LONG[:1000] / 300) for _ in layers)
    return flattening.Flattened(LONG, 3.0, 2.9, 0.03, 3.0, 1.0, 9.0, layers, scales, ("W1 neuron 3",) * 500)


def an_audit(**numbers):
    """Of more rows than a screen has."""
    return planted(**{f"row_{k}": 1.0 + k for k in range(40)}, **numbers)


# One case for every class, with more in it than fits one screen.
CASES = {
    "Run": a_run,
    "Run of a flow": lambda: steppe.run(least_squares(), Flow(), stop=until.time(0.1)),
    "Runs": a_batch,
    "Runs without records": lambda: a_batch(record=False),
    "Minima": minima,
    "Flattened": flattened,
    "Balanced": lambda: flattening.Balanced(LONG, LONG, 3.0, 2.9, 9.0),
    "Features": lambda: flattening.Features(RNG.normal(size=(50, 900)), LONG[:900], 1.0),
    "Interpolator": lambda: flattening.Interpolator(LONG, 3.0, 2.9, LONG, 0.0),
    "Flattest": lambda: flattening.Flattest(LONG, 3.0, 2.9, 1.0, 70),
    "Separation": lambda: flattening.separating.separate(RNG.normal(size=(40, 40))),
    "Critical": lambda: some_rates()[0],
    "CriticalRates": some_rates,
    "Sweep": a_sweep,
    "Descent": lambda: a_sweep().descents[0],
    "Transition": lambda: rates.transition(np.arange(1, 13) / 4, np.minimum(8.0, 8.8 / np.arange(1, 13))),
    "UShape": lambda: rates.u_shape(np.abs(np.arange(9) - 4.0)),
    "Audit": an_audit,
    "Comparison": lambda: auditing.compare({"a": an_audit(), "b": an_audit(sharpness=20.0)}),
    "Density": lambda: linalg.spectral_density(lambda v: LONG[:100] * v, 100, key=0),
    "Eigenpair": lambda: linalg.Eigenpair(Estimate.exact(3.0), LONG),
    "Eigenpairs": lambda: linalg.Eigenpairs((Estimate(3.0, 2.0, 4.0, 0.99),) * 30, RNG.normal(size=(900, 30))),
    "Diagonal": lambda: linalg.Diagonal(LONG, LONG, 7, True),
    "MeasuredDensity": lambda: measures.density(least_squares()),
    "Kinks": lambda: measures.Kinks(
        (measures.KinkedLayer("relu", *(LONG[:700].astype(int),) * 2, LONG[:700], LONG[:700] > 3),) * 30
    ),
    "Tridiagonal": lambda: linalg.Tridiagonal(LONG[:99], LONG[:99], RNG.normal(size=(900, 99))),
}


def test_every_class_has_a_case():
    rooms = (auditing, dynamics, flattening, flattening.separating, linalg, measures, rates)
    public = filter(inspect.isclass, (getattr(room, name) for room in rooms for name in dir(room)))
    assert all(issubclass(kind, Result) for kind in returned())
    results = {kind for kind in public if issubclass(kind, Result)} | returned()
    assert {kind.__name__ for kind in results} == {name.split()[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_every_result(name):
    result = CASES[name]()
    assert type(result).__name__ == name.split()[0]
    lines = repr(result).splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 120
    assert lines[0] == type(result).__name__
    assert not any("array(" in line or "[[" in line for line in lines)
    table = result.table()
    assert len({len(column) for column in table.values()}) == 1
    assert all(isinstance(column, np.ndarray) and column.ndim == 1 for column in table.values())
    figure = result.draw()
    assert isinstance(figure, Figure)
    assert any(axis.lines for axis in figure.axes)


def test_a_column_for_each_number_of_a_row():
    table = a_run().table()
    assert [name for name in table if name.startswith("w.")] == [f"w.{k}" for k in range(5)]


def test_one_row():
    """The rates to one loss are a table of one row, which no field tells."""
    assert "0.666667" in repr(rates.CriticalRates(some_rates()[:1]))
    assert repr(rates.CriticalRates()).splitlines()[0] == "CriticalRates"


def test_nothing_to_draw():
    run = steppe.run(least_squares(), GD(0.01), stop=until.steps(4), record={})
    with pytest.raises(ArgumentError, match="record"):
        run.draw()


def test_sweeps_name_their_outcomes():
    assert a_sweep().table()["outcome"].tolist() == ["reached", "diverged"]
