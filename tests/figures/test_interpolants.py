import numpy as np
import pytest

from steppe import figures

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
