"""Sharpness and smoothness against the step size, and the functions at the end of training."""

import numpy as np
import pytest

from steppe import figures

LR = [0.01, 0.1]
PANEL = {"title": "t", "lr": LR, "sharpness": [200.0, 20.0], "flattest": [50.0, 15.0], "bound": [9.0, 5.0],
         "failed": [0.5], "excluded": [0.001]}  # fmt: skip


def test_every_number_is_drawn_where_it_belongs():
    axis = figures.sharpness_curves({"title": "", "panels": [PANEL]}).axes[0]
    *series, limit, failed, excluded = axis.lines
    np.testing.assert_allclose(limit.get_ydata(), 2 / np.array([0.001, 0.01, 0.1, 0.5]))
    for line, name in zip(series, ("sharpness", "flattest", "bound"), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), LR)
        np.testing.assert_array_equal(line.get_ydata(), PANEL[name])
    np.testing.assert_array_equal(failed.get_xdata(), [0.5])
    np.testing.assert_array_equal(excluded.get_xdata(), [0.001])
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")


def test_panels_and_one_legend():
    figure = figures.sharpness_curves({"title": "all", "panels": [PANEL | {"failed": [], "excluded": []}] * 4})
    assert [axis.get_visible() for axis in figure.axes] == [True] * 4 + [False] * 2
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels)) == 4


def test_smoothness_and_its_bound():
    left, right = figures.smoothness({"title": "t", "lr": LR, "weighted": [3.0, 2.0], "centre": [8.0, 7.0]}).axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), [99.5, 9.5])
    np.testing.assert_array_equal(left.lines[1].get_ydata(), [3.0, 2.0])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), [8.0, 7.0])


X, Y = [-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_functions_over_the_points(count):
    function = {"label": "η = 1", "at": [-1.2, 0.0, 1.2], "value": [1.2, 0.0, 1.2]}
    figure = figures.interpolants({"title": "t", "x": X, "y": Y, "functions": [function] * count})
    visible = [axis for axis in figure.axes if axis.get_visible()]
    assert len(visible) == count
    for axis in visible:
        graph, points = axis.lines
        np.testing.assert_array_equal(graph.get_ydata(), function["value"])
        np.testing.assert_array_equal(points.get_xdata(), X)
        assert axis.get_xlim() == pytest.approx((-1.2, 1.2))


def test_stems_of_the_second_derivative():
    functions = [{"label": "a", "knots": [0.0, 0.5], "jumps": [2.0, -1.0]}, {"label": "b", "knots": [], "jumps": []}]
    numbers = {"title": "t", "x": X, "grid": X, "weight": [0.0, 0.5, 0.0], "functions": functions}
    axis = figures.second_derivatives(numbers).axes[0]
    stems = next(c for c in axis.collections if hasattr(c, "get_segments"))
    assert [tuple(map(tuple, s)) for s in stems.get_segments()] == [((0.0, 0.0), (0.0, 2.0)), ((0.5, 0.0), (0.5, -1.0))]
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), [2.0, -1.0])


def test_two_trainings():
    run = {"label": "a", "step": [1, 10], "loss": [1.0, 0.1], "at": X, "value": Y}
    numbers = {"title": "t", "x": X, "y": Y, "runs": [run, run | {"loss": [1.0, 0.01]}]}
    left, right = figures.two_trainings(numbers).axes
    assert [list(line.get_ydata()) for line in left.lines] == [[1.0, 0.1], [1.0, 0.01]]
    assert len(right.lines) == 3
    assert left.get_yscale() == "log"
