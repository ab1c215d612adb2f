"""Values that were once taken for others without a word: refused with the reason, or right."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import dynamics, losses, measures, until, when
from steppe.check import ArgumentError


def linear(w, x):
    return x @ w


def make(predict=linear, params=None, x=None, y=None, loss=losses.mse):
    params = np.ones(2, np.float32) if params is None else params
    return steppe.Problem(
        predict, params, np.ones((3, 2)) if x is None else x, np.zeros(3) if y is None else y, loss
    )  # fmt: skip


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def bits(request):
    with jax.enable_x64(request.param):
        yield request.param


# Numbers that the precision in use cannot hold.


@pytest.mark.parametrize("value", [1e300, -1e39, 1e-60, 1e-40])
@pytest.mark.parametrize("where", ["x", "y"])
def test_out_of_the_range_of_float32(where, value, bits):
    array = {"x": np.ones((3, 2)), "y": np.ones(3)}[where]
    array.flat[1] = value
    with pytest.raises(ArgumentError, match=f"{where} must be within the range of float32; got"):
        make(**{where: array})


@pytest.mark.parametrize("value", [1e300, 1e-60])
def test_a_parameter_out_of_range(value):
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="params must be within the range of float32"):
        make(lambda w, x: w * x[:, 0], params=value)
    assert make(lambda w, x: w * x[:, 0], params=value).w0 == value


@pytest.mark.parametrize("value", [2**40, -(2**31) - 1, np.uint64(2**63)])
def test_whole_numbers_do_not_wrap(value):
    x = np.full((3, 2), value)
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="x must be within the range of"):
        make(x=x)
    assert make(x=x).x.tolist() == x.tolist()


@pytest.mark.parametrize(
    "y", [np.array([1, None, 2], object), ["1", "2", "3"], [None] * 3, np.ones(3) * 1j, [[1], [1, 2], 3],
          np.array(["2020-01-01"] * 3, "datetime64[D]"), {"a": 1}],
    ids=["object", "text", "None", "complex", "ragged", "dates", "dict"],
)  # fmt: skip
def test_targets_that_are_no_numbers(y):
    with pytest.raises(ArgumentError, match="y must be an array"):
        make(y=y)


@pytest.mark.parametrize("x", [np.array([["1", "2"]] * 3), np.array([[1, None]] * 3, object), [[1, 2]] * 3], ids=repr)
def test_inputs_that_are_no_numbers(x):
    with pytest.raises(ArgumentError, match="x must be"):
        make(x=x)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_nan_in_half_precision(dtype):
    with pytest.raises(ArgumentError, match="x must be finite; 6 of 6"):
        make(x=jnp.full((3, 2), jnp.nan, dtype))


# Networks.


@pytest.mark.parametrize("cast", [int, bool, complex])
def test_predictions_that_are_not_real(cast):
    with pytest.raises(ArgumentError, match=r"predict\(params, x\) must be real floating numbers"):
        make(lambda w, x: (x @ w).astype(cast))


def drawing(rng):
    return lambda w, x: x @ w + rng.normal()


def calling_out(rng):
    return lambda w, x: x @ w + jax.pure_callback(lambda: rng.normal(), jax.ShapeDtypeStruct((), np.float64))


def changing(rng):
    calls = []
    return lambda w, x: x @ w * (calls.append(1) or float(len(calls) > 1))


@pytest.mark.parametrize("network", [drawing, calling_out, changing])
def test_a_network_that_is_not_one_function(network):
    for use in (
        lambda p: p.loss(p.w0), measures.sharpness, lambda p: steppe.run(p, dynamics.GD(0.1), stop=until.steps(1)),
        lambda p: dynamics.run_many(p, dynamics.GD(0.1), stop=until.steps(1)),
    ):  # fmt: skip
        p = make(network(np.random.default_rng(0)), params=np.ones(2))
        with pytest.raises(ArgumentError, match=r"predict must be the same function of \(params, x\) at every call"):
            use(p)


def test_running_statistics_are_no_parameters():
    """Sharpness with the statistics among the parameters was 2.558 instead of 2.402."""
    linen, nnx = pytest.importorskip("flax.linen"), pytest.importorskip("flax.nnx")
    module = linen.Sequential([linen.Dense(3), linen.BatchNorm(use_running_average=True), linen.Dense(1)])
    variables = module.init(jax.random.key(0), jnp.ones((4, 2)))

    def predict(variables, x):
        return module.apply(variables, x)[:, 0]

    plain = {"stem.weight": np.ones((2, 1)), "bn.running_mean": np.zeros(1)}
    for params in (variables, {"net": variables}, plain, nnx.state(nnx.BatchNorm(2, rngs=nnx.Rngs(0)))):
        with pytest.raises(ArgumentError, match="params must be parameters only"):
            make(predict, params=params)
    assert make(lambda w, x: predict({**variables, "params": w}, x), params=variables["params"]).w0.size == 9 + 6 + 4
    held = steppe.Problem.of((module, variables), np.ones((3, 2)), np.zeros((3, 1)), losses.mse)
    assert held.w0.size == 9 + 6 + 4


def test_a_network_that_cannot_be_compared():
    module = eqx.nn.Linear(2, 1, key=jax.random.key(0))
    with pytest.raises(ArgumentError, match="predict must be hashable"):
        make(module)


# Vectors and numbers of examples.


@pytest.mark.parametrize("w", [np.ones(5), np.ones(1), np.ones((2, 1)), [1.0, 1.0], None, "ab", {"a": np.ones(2)},
                               np.ones(2) + 1j, np.ones(2, int)])  # fmt: skip
def test_parameters_of_another_shape_or_kind(w):
    p = make()
    for use in (p.loss, p.predictions, p.unravel, lambda w: p.example_loss(w, 0)):
        with pytest.raises(ArgumentError, match="w must be a flat vector of 2 real parameters"):
            use(w)


@pytest.mark.parametrize("w", [np.ones(2) * 1j, np.array(["a", "b"]), [None, 1], np.full(2, 1e300)])
def test_starts_that_are_not_real(w):
    p = make()
    for use in (p.vector, lambda w: steppe.run(p, dynamics.GD(0.1), w, stop=until.steps(1)),
                lambda w: dynamics.run_many(p, dynamics.GD(0.1), w, stop=until.steps(1))):  # fmt: skip
        with pytest.raises(ArgumentError, match="w must be"):
            use(w)


@pytest.mark.parametrize("i", [3, -4, 1.5, True, [0], None, np.nan])
def test_an_example_that_is_not_there(i):
    p = make()
    with pytest.raises(ArgumentError, match="i must be a whole number from 0 to 2"):
        p.example_loss(p.w0, i)


def test_examples_in_compiled_code():
    p = make(y=np.arange(3.0))
    each = jax.jit(jax.vmap(p.example_loss, (None, 0)))(p.w0, jnp.array([0, 1, 2, -1, 3, -4]))
    assert each[:4].tolist() == [4.0, 1.0, 0.0, 0.0]
    assert np.isnan(each[4:]).all()
    for index in ([0, 7], [], [True, False, True], [0.0], 1):
        with pytest.raises(ArgumentError, match="index must be a list of whole numbers"):
            p.batch_loss(p.w0, index)


# Dynamics, stops and moments.


@pytest.mark.parametrize("rates", [
    dynamics.GD([0.1, 0.2]), dynamics.GD(np.array([0.1])), dynamics.SAM(0.1, [0.1, 0.2]),
    dynamics.HeavyBall(0.1, [0.1, 0.2]), dynamics.GD(0.1, weight_decay=[0.1, 0.2]),
    dynamics.LabelNoise(dynamics.GD([0.1, 0.2]), 0.1), dynamics.LabelNoise(dynamics.GD(0.1), [0.1, 0.2]),
])  # fmt: skip
def test_an_array_is_no_rate_per_coordinate(rates):
    with pytest.raises(ArgumentError, match=r"must be one number; got 'an array of shape .*run_many"):
        steppe.run(make(), rates, stop=until.steps(2))


@pytest.mark.parametrize("rate", [1e60, 1e-60, 1j, "0.1", None, True, [1, [2, 3]], np.nan, -1])
def test_rates(rate):
    with jax.enable_x64(False), pytest.raises(ArgumentError, match="lr must be"):
        dynamics.GD(rate)


@pytest.mark.parametrize("shrink", [5, 1.001, [0.1, 2], -1])
def test_a_decay_that_turns_signs(shrink):
    with pytest.raises(ArgumentError, match="shrink must be"):
        dynamics.Decayed(dynamics.GD(0.1), {"a"}, shrink)


def test_one_text_is_no_list_of_names():
    for wrapper in (dynamics.Decayed, dynamics.Projected):
        with pytest.raises(ArgumentError, match="names must be a list or set of names; got 'ab'"):
            wrapper(dynamics.GD(0.1), "ab", 0.5)


@pytest.mark.parametrize("made", [
    lambda: until.Stop(steps=2.5), lambda: until.Stop(steps=-1), lambda: until.Stop(epochs=np.nan),
    lambda: until.Stop(loss="a"), lambda: until.Stop(seconds=np.nan), lambda: until.steps(None),
    lambda: when.When(distance=0), lambda: when.When(distance=2.5), lambda: when.When(per_decade=0),
    lambda: when.When(flow_times=(np.nan,)), lambda: when.When(chosen=(1.5,)), lambda: when.steps("12"),
])  # fmt: skip
def test_stops_and_moments_that_never_come(made):
    """A run until step 2.5 went on for ever, as did one recorded every 0 steps."""
    with pytest.raises(ArgumentError, match="must be"):
        made()


def test_chosen_moments_are_sorted():
    assert when.When(chosen=(3, 1)).after(0) == 1


@pytest.mark.parametrize("end", [1e30, 1e300])
def test_a_flow_at_its_minimum_ends(end):
    p = make(params=np.zeros(2), x=np.eye(3)[:, :2])
    run = steppe.run(p, dynamics.Flow(), stop=until.time(end))
    assert (run.outcome, run.w.tolist()) == ("exhausted", [0.0, 0.0])


@pytest.mark.parametrize("radius", [1e20, 1e30, 1e200])
def test_a_maximum_beyond_the_range_of_numbers(radius):
    with jax.enable_x64(False):
        for measure in (measures.worst_adaptive_sharpness, measures.adaptive_sharpness):
            with pytest.raises(ArgumentError, match="take a smaller radius"):
                measure(make(), radius=radius)
