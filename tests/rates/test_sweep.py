"""A sweep is so many runs of gradient descent: the same steps however it is carried out, and known ends."""

import functools

import equinox as eqx
import jax
import numpy as np
import pytest
from cases.rate_nets import digits, factorisation

import steppe
from steppe import measures, rates, until
from steppe.check import ArgumentError
from steppe.dynamics import GD
from steppe.rates._descent import PRODUCT
from steppe.rates._measured import norms, per_layer
from steppe.rates._sweep import flow_row
from steppe.store import Checkpoint

GOALS = (0.3, 0.2)
RATES = (0.1, 0.25, 0.5, 1.2, 40.0)


@functools.cache
def dense():
    """∇²L of the digits."""
    return jax.jit(jax.hessian(digits()[0].loss))


@functools.cache
def gradient():
    return jax.jit(jax.value_and_grad(digits()[0].loss))


@pytest.fixture(scope="module")
def swept():
    problem, test = digits()
    return rates.sweep(problem, RATES, goals=GOALS, test=test, together=False, steps=3000, share=1.0)


def test_each_run_is_gradient_descent(swept):
    """To the bit: the same compiled step, whatever is looked at on the way."""
    problem, _ = digits()
    for descent in swept.descents[:3]:
        for point in descent.reached:
            alone = steppe.run(problem, GD(descent.lr), stop=until.loss(point.goal), record={})
            assert alone.steps == point.step
            np.testing.assert_array_equal(alone.w, point.w)


def test_together_is_one_after_another(swept):
    """To the bit, everything that is recorded and measured."""
    problem, test = digits()
    many = rates.sweep(problem, RATES, goals=GOALS, test=test, together=True, steps=3000, share=1.0)
    assert [d.outcome for d in many.descents] == [d.outcome for d in swept.descents]
    for a, b in zip(many.descents, swept.descents, strict=True):
        assert (a.steps, a.gradients, a.products) == (b.steps, b.gradients, b.products)
        for name, column in a.records.items():
            np.testing.assert_array_equal(column, b.records[name], err_msg=name)
    assert list(many.ends) == list(swept.ends)
    for name, column in swept.ends.items():
        np.testing.assert_array_equal(many.ends[name], column, err_msg=name)


def test_divergence_is_data(swept):
    assert [d.outcome for d in swept.descents[:3]] == ["reached"] * 3
    lost = swept.descents[-1]
    assert lost.outcome == "diverged"
    assert not lost.reached
    last = swept.at(GOALS[-1])
    assert np.isnan(last["sharpness"][-1])


def test_what_is_measured_by_other_routes(swept):
    """Dense Hessian, numpy's norms, and the measures of the library."""
    problem, test = digits()
    ends, point = swept.at(GOALS[-1]), swept.descents[1].reached[-1]
    w = point.w
    row = {name: float(column[1]) for name, column in ends.items()}
    assert row["sharpness"] == pytest.approx(np.linalg.eigvalsh(dense()(w))[-1], rel=1e-3)
    flat = np.asarray(w)
    layers = jax.tree.leaves(problem.unravel(flat))
    assert row["l1"] == pytest.approx(np.abs(flat).sum())
    assert row["l2"] == pytest.approx(np.sqrt(flat @ flat))
    nuclear = [np.linalg.svd(a, compute_uv=False).sum() for a in layers if a.ndim == 2]
    assert row["nuclear"] == pytest.approx(sum(nuclear))
    assert row["l1[0]['W']"] == pytest.approx(np.abs(problem.unravel(flat)[0]["W"]).sum())
    assert row["from_start_l2"] == pytest.approx(np.linalg.norm(flat - np.asarray(problem.w0)))
    assert row["test_loss"] == pytest.approx(float(jax.jit(test.loss)(w)))
    assert row["test_accuracy"] == measures.accuracy(test, w).value
    assert row["train_loss"] <= GOALS[-1]
    assert row["limit"] == 2 / swept.descents[1].lr
    path = swept.descents[1].records
    assert row["largest_sharpness"] == np.nanmax(path["sharpness"][path["step"] <= point.step])
    assert row["smoothed_sharpness"] <= row["largest_sharpness"]


def test_the_sharpness_of_every_end_is_certified(swept):
    """The dense λ_max lies in every interval, 0.1% wide; so it does at the ends of a flow, wherever they are."""
    problem, _ = digits()
    points = [point for descent in swept.descents for point in descent.reached]
    assert len(points) >= 6
    flowed = [rates.Critical(p.goal, "reached", p.w + 0.01, 1.0, 1.0, 1.0, 1.0, 1) for p in points[:2]]
    flow = flow_row(problem, flowed, start=problem.w0, test=None, all_sharpness=False, key=0)
    for table, ends in ((swept.ends, points), (flow, flowed)):
        columns = [table[f"sharpness{part}"] for part in ("_lower", "", "_upper")]
        rows = np.array(columns)[:, np.isfinite(columns[1])].T
        assert len(rows) == len(ends)
        for (lower, value, upper), end in zip(rows, ends, strict=True):
            truth = np.linalg.eigvalsh(dense()(end.w))[-1]
            assert lower <= truth <= upper
            assert lower <= value <= upper <= lower + 1e-3 * value


def test_the_mean_of_the_iterates_by_hand(swept):
    point, lr = swept.descents[2].reached[0], swept.descents[2].lr
    w, iterates = np.asarray(point.w), []
    for _ in range(16):
        iterates.append(w)
        w = w - lr * np.asarray(gradient()(w)[1])
    np.testing.assert_allclose(point.centre, np.mean(iterates, axis=0), rtol=1e-10)


def test_loss_and_norms_are_recorded_more_often_than_sharpness(swept):
    """At steps at most a tenth of those done apart, each that of the iterate there; at the goals with sharpness."""
    problem, _ = digits()
    for descent in swept.descents[:2]:
        records = descent.records
        steps, known = records["step"], np.isfinite(records["sharpness"])
        assert (np.diff(steps) <= np.maximum(1, 0.1 * steps[:-1])).all()
        assert 0 < known.sum() < len(steps)
        assert known[np.isin(steps, [point.step for point in descent.reached])].all()
        w, wanted = np.asarray(problem.w0), dict(zip(steps.astype(int), records["loss"], strict=True))
        for step in range(int(steps[-1]) + 1):
            loss, g = map(np.asarray, gradient()(w))
            if step in wanted:
                assert wanted.pop(step) == pytest.approx(float(loss))
            w = w - descent.lr * g
        assert not wanted


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_products_cost_at_most_their_share_of_the_gradients(share):
    """Counted: two gradients a product. A look is paid for before the next one; the last one and the one at the goal,
    which is always made, may overdraw: at most 6 products and what settling them takes."""
    problem, _ = digits()
    found = rates.sweep(problem, (0.05, 0.2), goals=[0.2], share=share, together=False)
    for descent in found.descents:
        looks = np.isfinite(descent.records["sharpness"]).sum()
        dearest = max(6 * PRODUCT, PRODUCT * descent.products / looks * 2)
        assert PRODUCT * descent.products <= share * descent.gradients + 2 * dearest
    assert found.descents[0].gradients == found.descents[0].steps + 1 + 16  # the last loss, and the mean


def test_sharpness_ends_at_two_over_the_rate_above_the_critical_one():
    """w₁w₂ = 1 with w₁² + w₂² ≤ 2/η, and from an unbalanced start the flow's end is sharper than that."""
    p = factorisation()
    found = rates.sweep(p, goals=[1e-8], flow=steppe.dynamics.Flow(1e-5), fine=True, coarse=False)
    (c,) = found.critical
    np.testing.assert_allclose([d.lr for d in found.descents], c.fine_grid()[: len(found.descents)])
    ends = found.at(1e-8)
    reached = ends["outcome"] == 0
    below = reached & (ends["lr"] < 0.3 * c.rate)
    above = reached & (ends["lr"] > 1.05 * c.rate)
    assert above.sum() >= 2
    np.testing.assert_allclose(ends["sharpness"][below], c.sharpness, rtol=0.05)  # of first order in the rate
    assert (ends["sharpness"][above] <= ends["limit"][above] * 1.001).all()
    # The flow keeps w₁² − w₂².
    assert found.flow["sharpness"][0] == pytest.approx(np.sqrt((4 - 0.01) ** 2 + 4), rel=1e-3)


class Kept:
    """A checkpoint on disk that ends the sweep after some saves, as a kill would."""

    def __init__(self, path, after):
        self.inner, self.after = Checkpoint(path, 0.0), after

    def load(self):
        return self.inner.load()

    def due(self):
        return True

    def save(self, arrays):
        self.inner.save(arrays)
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("together", [False, True])
def test_a_killed_sweep_goes_on_to_the_same_result(together, tmp_path):
    p = factorisation()
    options = {"goals": [1e-2, 1e-6], "together": together, "coarse": False, "share": 2.0}
    whole = rates.sweep(p, **options)
    kept, kills = Kept(tmp_path / "checkpoint", 2), 0
    while True:
        try:
            again = rates.sweep(p, checkpoint=kept, **options)
            break
        except KeyboardInterrupt:
            kills, kept.after = kills + 1, 6
    assert kills >= 3
    for name, column in whole.ends.items():
        np.testing.assert_array_equal(again.ends[name], column, err_msg=name)
    for a, b in zip(again.descents, whole.descents, strict=True):
        np.testing.assert_array_equal(a.records["sharpness"], b.records["sharpness"])
        assert (a.outcome, a.steps, a.gradients, a.products) == (b.outcome, b.steps, b.gradients, b.products)


def test_norms_of_any_pytree():
    """One array, a list, a dictionary, a module of equinox: norms of all parameters are those of the flat vector."""
    x, y = np.random.default_rng(0).normal(size=(6, 3)), np.ones(6)
    mlp, static = eqx.partition(eqx.filter_jit(eqx.nn.MLP)(3, "scalar", 4, 1, key=jax.random.key(0)), eqx.is_array)
    kinds = {
        "array": (np.ones(3), lambda w, x: x @ w),
        "list": ([np.ones((3, 2)), np.ones(2)], lambda w, x: x @ w[0] @ w[1]),
        "dictionary": ({"a": np.ones((3, 2)), "b": np.ones(2)}, lambda w, x: x @ w["a"] @ w["b"]),
        "module": (mlp, lambda w, x: jax.vmap(eqx.combine(w, static))(x)),
    }
    for kind, (params, predict) in kinds.items():
        problem = steppe.Problem(predict, params, x, y, steppe.losses.half_mse)
        found = norms(per_layer(problem, problem.w0))
        w, matrices = np.asarray(problem.w0), [a for a in jax.tree.leaves(params) if a.ndim == 2]
        truth = {"l1": np.abs(w).sum(), "l2": np.sqrt(w @ w)}
        truth["nuclear"] = sum(np.linalg.svd(a, compute_uv=False).sum() for a in matrices)
        assert found == pytest.approx(truth, rel=1e-5), kind
    # The last one, in a sweep: at the start all goals are reached, w and the mean of the iterates from there are known.
    ends = rates.sweep(problem, [1e-9], goals=[1e9]).ends
    for name, value in truth.items():
        for column in (name, f"centre_{name}"):
            assert ends[column] == pytest.approx(value, rel=1e-5), column


def test_a_run_that_is_lost_past_a_goal():
    """It has no mean of the iterates from there on; everything else is measured."""
    found = rates.sweep(digits()[0], [0.5, 1e50], goals=[1e3, 0.3], share=1.0, together=False)
    assert [d.outcome for d in found.descents] == ["reached", "diverged"]
    ends = found.at(1e3)
    assert ends["outcome"].tolist() == [0, 0]
    assert np.isfinite(ends["nuclear"]).all()
    for name in ("centre_l1", "centre_nuclear", "centre_loss"):
        assert np.isfinite(ends[name]).tolist() == [True, False]


def test_the_columns_are_there_when_no_rate_reaches_a_goal():
    reached, none = (rates.sweep(factorisation(), [0.01, 0.1], goals=[1e-3], steps=steps) for steps in (10_000, 2))
    assert [d.outcome for d in none.descents] == ["exhausted"] * 2
    assert set(none.ends) == set(reached.ends)
    for name in set(none.ends) - {"lr", "goal", "limit", "outcome"}:
        assert np.isnan(none.ends[name]).all()
        assert np.isfinite(reached.ends[name]).all()


def test_a_start_below_the_goal():
    """The flow has no way to go, and so has no run; the paper's grid is that of the start."""
    found = rates.sweep(factorisation(), goals=[1e9], coarse=False)
    assert len(found.descents) == 12
    assert {(d.outcome, d.steps) for d in found.descents} == {("reached", 0)}


def test_rows_of_one_goal_only():
    found = rates.sweep(factorisation(), [0.1], goals=[1e-9, 1e-10])
    assert found.at(1e-9)["goal"].tolist() == [1e-9]
    with pytest.raises(ArgumentError, match="Its goals are 1e-09, 1e-10"):
        found.at(1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": []}, "at least one rate"),
        ({"rates": 0.1}, "at least one rate"),
        ({"goals": 0.1}, "at least one loss"),
        ({"rates": [0.1], "test": 3}, "test"),
        ({"rates": [-1.0]}, "rates"),
        ({"goals": []}, "at least one loss"),
        ({"goals": [0.0]}, "goals"),
        ({"rates": [0.1], "share": 0}, "share"),
        ({"rates": [0.1], "steps": 0}, "steps"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ArgumentError, match=message):
        rates.sweep(factorisation(), **options)
