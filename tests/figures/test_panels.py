"""Panels and their series, places, spans and legends; the table; and what a user sees of the package."""

import numpy as np

from steppe import figures
from steppe.figures._style import COLOURS

PANEL = {
    "x": "rate", "y": "risk", "title": "t", "log": "xy", "limits": {"y": [1, 100]}, "legend": "upper left",
    "places": [{"at": 3.0, "label": "here"}, {"at": 4.0, "label": "low", "low": True}],
    "spans": [{"from": 5.0, "to": 6.0, "label": "gone", "colour": "red"}],
    "series": [
        {"x": [1, 2], "y": [3, 4], "kind": "points", "colour": "blue", "label": "measured"},
        {"x": [1, 2], "y": [5, 6], "kind": "dashed", "colour": "ink"},
        {"x": [1, 2], "y": [7, 8], "kind": "line", "colour": "green", "error": [0.5, 0.25]},
    ],
}  # fmt: skip


def test_series_places_and_spans():
    figure = figures.panels({"title": "all", "panels": [PANEL, PANEL]})
    axis = figure.axes[0]
    points, dashed, line, *_ = axis.lines
    assert points.get_xydata().tolist() == [[1, 3], [2, 4]]
    assert (points.get_color(), points.get_linestyle(), points.get_marker()) == (COLOURS["blue"], "None", "o")
    assert (dashed.get_linestyle(), line.get_color()) == ("--", COLOURS["green"])
    verticals = [set(v.get_xdata()) for v in axis.lines if len(set(v.get_xdata())) == 1 and v.get_linestyle() != "None"]
    assert {3.0} in verticals
    assert {4.0} in verticals
    assert (axis.get_xscale(), axis.get_yscale(), axis.get_ylim()) == ("log", "log", (1, 100))
    assert {"here", "low", "gone"} <= {t.get_text() for t in axis.texts}
    bars = axis.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose([b[:, 1] for b in bars], [[6.5, 7.5], [7.75, 8.25]])
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["measured"]


def test_no_labels_no_legend():
    bare = {"x": "a", "y": "b", "series": [{"x": [1], "y": [1], "kind": "crosses", "colour": "pink"}]}
    assert figures.panels({"title": "", "panels": [bare]}).axes[0].get_legend() is None


def test_a_table_has_its_head_and_its_rows():
    figure = figures.table({"title": "t", "head": ["a", "b"], "rows": [["1", "2"], ["3", "4"]]})
    (drawn,) = figure.axes[0].tables
    shown = {at: cell.get_text().get_text() for at, cell in drawn.get_celld().items()}
    assert shown == {(0, 0): "a", (0, 1): "b", (1, 0): "1", (1, 1): "2", (2, 0): "3", (2, 1): "4"}


def test_a_grid_of_rates_has_one_legend_and_empty_places():
    series = [{"x": [1, 2], "y": [3, 4], "kind": "squares", "colour": "red", "label": "runs"}]
    edge = {"at": 2.0, "label": "edge", "colour": "ink", "style": "--"}
    panel = {
        "x": "rate",
        "y": "loss",
        "series": series,
        "places": [edge],
        "levels": [edge | {"label": "level"}],
        "top": 9,
    }
    figure = figures.rates({"title": "t", "grid": [[panel, panel], [None, panel]]})
    assert [axis.get_visible() for axis in figure.axes] == [True, True, False, True]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["runs", "level", "edge"]
    assert figure.axes[0].get_ylim() == (0, 9)


def test_the_package_shows_figures_only():
    public = {name for name in dir(figures) if not name.startswith("_")}
    assert all(callable(getattr(figures, name)) for name in public)
