import numpy as np

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
