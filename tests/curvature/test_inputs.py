"""Bad input: refused with the argument, the rule, what came and what to do."""

import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import problem

import steppe
from steppe import curvature as operators
from steppe import measures
from steppe.check import ArgumentError


def top_eigenvalues(problem, w):
    return measures.top_eigenvalues(problem, w, k=2)


# Measures of curvature need finite parameters; measures of a run that diverged are a result.
CURVATURE = [
    measures.sharpness,
    measures.spectral_norm,
    top_eigenvalues,
    measures.trace,
    measures.fisher_sharpness,
    measures.fisher_trace,
    measures.adaptive_sharpness,
    measures.worst_adaptive_sharpness,
    measures.random_direction_sharpness,
    measures.density,
    measures.kinks,
    measures.invariant_trace,
    measures.invariant_sharpness,
    measures.Tracker(),
]
FIT = [measures.loss, measures.accuracy, measures.zero_one_error, measures.margin]
SIZE = [measures.norm, measures.layer_norms, measures.distance]
MEASURES = [*CURVATURE, *FIT, *SIZE]


def test_every_measure_is_named_here():
    public = {n for n in dir(measures) if inspect.isfunction(getattr(measures, n))} | {"Tracker"}
    of_a_step = {"edge_ratio", "critical_sharpness"}  # they take a step besides w: tests/measures/test_edge.py
    assert public - of_a_step == {name(measure) for measure in MEASURES}


def name(measure):
    return getattr(measure, "__name__", type(measure).__name__)


@pytest.mark.parametrize("measure", CURVATURE, ids=name)
def test_parameters_that_are_not_finite(measure):
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="w must be finite; 1 of 56 entries are NaN"):
        measure(p, p.w0.at[3].set(jnp.nan))


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_integer_parameters(measure):
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match=r"w must be of a real floating type; got 'int64'. Convert it: w.astype"):
        measure(p, np.ones(p.w0.size, dtype=int))


@pytest.mark.parametrize("measure", [*CURVATURE, *FIT], ids=name)
def test_a_network_that_draws_at_random(measure):
    rng = np.random.default_rng(0)
    p = steppe.Problem(
        lambda w, x: x @ w * rng.normal(), np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse
    )
    with pytest.raises(ArgumentError, match=r"predict must be the same function of \(params, x\) at every call"):
        measure(p, p.w0)


def test_a_network_that_calls_out_to_a_generator():
    rng = np.random.default_rng(0)

    def predict(w, x):
        noise = jax.pure_callback(lambda: rng.normal(), jax.ShapeDtypeStruct((), np.float64))
        return x @ w + noise

    p = steppe.Problem(predict, np.ones(2), np.ones((1, 2)), np.ones(1), steppe.losses.half_mse)
    for curvature in (operators.hessian, operators.fisher):
        with pytest.raises(ArgumentError, match="between two calls"):
            measures.sharpness(p, p.w0, curvature=curvature)


def test_a_constant_key_is_no_randomness():
    key = jax.random.key(0)

    def predict(w, x):
        return x @ w * jax.random.bernoulli(key, 0.9)

    p = steppe.Problem(predict, np.ones(2), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse)
    assert measures.sharpness(p, p.w0).value == pytest.approx(2.0, rel=1e-12)


def test_a_wrong_shape():
    p = problem("two-layer")
    with pytest.raises(ArgumentError, match="w must be a flat vector of 56 parameters; got 'shape"):
        measures.sharpness(p, np.ones(3))


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_another_pytree(measure):
    with pytest.raises(ArgumentError, match="w must be a flat vector of 56 parameters, or the pytree of them; got"):
        measure(problem("two-layer"), {"W": np.ones(56)})


def test_no_numbers():
    with pytest.raises(ArgumentError, match="w must be of a real floating type; got '<U3'"):
        measures.sharpness(problem("two-layer"), "w.0")


@pytest.mark.parametrize(
    "argument",
    [{"curvature": "hessian"}, {"statistics": "frozen"}, {"memory": 0}, {"accuracy": 1e-3}],
    ids=lambda a: next(iter(a)),
)
def test_a_tracker_refuses_when_it_is_made(argument):
    with pytest.raises(ArgumentError, match=f"{next(iter(argument))} must be"):
        measures.Tracker(**argument)


@pytest.mark.parametrize("measure", MEASURES, ids=name)
def test_no_problem(measure):
    with pytest.raises(ArgumentError, match=r"problem must be a steppe\.Problem; .* Build steppe\.Problem"):
        measure(lambda w: w, np.ones(3))


@pytest.mark.parametrize("measure", CURVATURE, ids=name)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_of_too_few_bits(measure, dtype):
    p = problem("two-layer")
    params = jax.tree.map(lambda a: a.astype(dtype), p.unravel(p.w0))
    half = steppe.Problem(p.predict, params, p.x, p.y, p.loss_function)
    with pytest.raises(ArgumentError, match=f"params must be float32 or float64 for curvature; got '{dtype}'. Build"):
        measure(half, half.w0)


def test_what_is_read_off_takes_few_bits():
    p = steppe.Problem(lambda w, x: x @ w, np.ones(2, np.float16), np.ones((3, 2)), np.ones(3), steppe.losses.half_mse)
    assert [measure(p, p.w0).value for measure in (measures.loss, measures.accuracy, measures.margin)] == [
        0.5,
        1.0,
        2.0,
    ]


ACCURACY = ({"accuracy": 1e-3}, "accuracy must be a steppe.Accuracy; got 0.001")
MATRIX = ({"curvature": "hessian"}, "curvature must be a curvature matrix; got 'hessian'. Pass hessian, gauss_newton")
COMMON = [
    ({"key": "x"}, "key must be a whole number ≥ 0; got 'x'"),
    ({"memory": -3}, "memory must be a finite number > 0; got -3"),
    ({"statistics": "frozen"}, "statistics must be a treatment of batch statistics; got 'frozen'"),
]
POLICIES = {
    measures.sharpness: [*COMMON, ACCURACY, MATRIX],
    measures.spectral_norm: [*COMMON, ACCURACY, MATRIX],
    partial(measures.top_eigenvalues, k=1): [
        *COMMON, ACCURACY, MATRIX, ({"block": "a"}, "block must be a whole number ≥ 1; got 'a'"),
    ],
    measures.trace: [*COMMON, ACCURACY],
    measures.fisher_sharpness: [*COMMON, ACCURACY],
    measures.fisher_trace: [*COMMON, ACCURACY],
    measures.adaptive_sharpness: [*COMMON, ACCURACY],
    measures.worst_adaptive_sharpness: [
        *COMMON,
        ({"steps": -1}, "steps must be a whole number ≥ 1; got -1"),
        ({"restarts": -2}, "restarts must be a whole number ≥ 0; got -2"),
    ],
    measures.random_direction_sharpness: [*COMMON, ACCURACY],
    measures.density: [
        *COMMON, MATRIX,
        ({"grid": "x"}, "grid must be a vector of real numbers; got 'x'"),
        ({"grid": 1.0}, "grid must be a vector of real numbers; got 1.0"),
        ({"grid": [np.inf]}, "grid must be finite"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ["two-layer", "least-squares"])
@pytest.mark.parametrize(
    ("measure", "argument", "message"), [(m, *case) for m, cases in POLICIES.items() for case in cases]
)
def test_a_policy_is_refused_whether_or_not_it_is_needed(name, measure, argument, message):
    """Also if a closed form makes the argument unnecessary; and before w and the network are checked."""
    p = problem(name)
    with pytest.raises(ArgumentError, match=message):
        measure(p, p.w0 * jnp.nan, **argument)


def test_empty_data():
    with pytest.raises(ArgumentError, match="y must be an array with one row an example, not empty"):
        steppe.Problem(lambda w, x: x @ w, np.ones(2), np.ones((0, 2)), np.ones(0), steppe.losses.mse)


def test_a_loss_that_is_not_finite():
    p = steppe.Problem(
        lambda w, x: jnp.log(x @ w), np.array([-1.0, 1.0]), np.ones((1, 2)), np.ones(1), steppe.losses.mse
    )
    with pytest.raises(ArgumentError, match="the parameters and the loss are finite"):
        measures.sharpness(p, p.w0)
