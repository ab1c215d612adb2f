"""Training curves, and the files of a figure."""

import json

import numpy as np
import pytest

from steppe import figures

EPOCHS = [0.0, 1.0, 10.0, 100.0]
NUMBERS = {
    "title": "a title",
    "bound": 22.27,
    "stages": [50],
    "runs": [
        {"seed": s, "epoch": EPOCHS, "train_loss": [1, 0.1, 0.01, 0.001 + s], "test_accuracy": [0.5, 0.6, 0.9, 0.8],
         "trace": [100, 60, 30, 23 + s]}
        for s in range(3)
    ],
}  # fmt: skip


def lines(axis):
    return [line.get_ydata() for line in axis.lines]


def test_every_number_is_drawn_where_it_belongs():
    figure = figures.training_curves(NUMBERS)
    loss, accuracy, trace = figure.axes
    assert [a.get_xscale() for a in figure.axes] == ["log"] * 3
    assert loss.get_yscale() == trace.get_yscale() == "log"
    for axis, name in ((loss, "train_loss"), (accuracy, "test_accuracy"), (trace, "trace")):
        for run, drawn in zip(NUMBERS["runs"], lines(axis), strict=False):
            np.testing.assert_array_equal(drawn, run[name])
        np.testing.assert_array_equal(lines(axis)[3], np.median([r[name] for r in NUMBERS["runs"]], axis=0))
    assert any(np.allclose(y, 22.27) for y in lines(trace))
    assert not any(np.allclose(y, 22.27) for y in lines(loss))


def test_many_seeds_are_bands():
    runs = [NUMBERS["runs"][0] | {"trace": [100, 60, 30, 23 + s]} for s in range(5)]
    trace = figures.training_curves(NUMBERS | {"runs": runs}).axes[2]
    everything, half = (band.get_paths()[0].vertices[:, 1] for band in trace.collections)
    assert (everything.min(), everything.max()) == (23, 100)
    assert sorted(set(half)) == [24, 26, 30, 60, 100]
    np.testing.assert_array_equal(lines(trace)[0], [100, 60, 30, 25])


def test_a_negative_trace_has_its_place():
    runs = [NUMBERS["runs"][0] | {"trace": [100, -60, 3, 2]}]
    assert figures.training_curves(NUMBERS | {"runs": runs}).axes[2].get_yscale() == "symlog"


def test_without_a_bound():
    figure = figures.training_curves(NUMBERS | {"bound": None})
    assert not any(np.allclose(y, 22.27) for y in lines(figure.axes[2]))


def test_files_are_the_same_bytes_for_the_same_numbers(tmp_path):
    for name in ("a", "b"):
        written = figures.save(figures.training_curves(NUMBERS), NUMBERS, tmp_path / name / "figure")
        assert [p.suffix for p in written] == [".png", ".pdf", ".json"]
    for ending in (".png", ".pdf", ".json"):
        assert (tmp_path / "a" / f"figure{ending}").read_bytes() == (tmp_path / "b" / f"figure{ending}").read_bytes()
    assert json.loads((tmp_path / "a" / "figure.json").read_text()) == NUMBERS


def test_numbers_that_are_not_finite_are_refused_before_anything_is_written(tmp_path):
    numbers = NUMBERS | {"bound": float("nan")}
    with pytest.raises(ValueError, match="JSON compliant"):
        figures.save(figures.training_curves(NUMBERS), numbers, tmp_path / "figure")
    assert not list(tmp_path.iterdir())
