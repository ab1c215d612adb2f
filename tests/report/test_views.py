"""Every drawing has a view for the browser, or is one of the few that only a picture shows."""

import numpy as np
import pytest

from steppe import papers
from steppe.report import PICTURES
from steppe.report._vega import MOST, rows, spec
from steppe.report._views import _VIEWS, view


@pytest.mark.parametrize("name", papers.names())
def test_every_drawing_has_a_view(name):
    drawings = {figure.show.draw.__name__ for figure in papers.paper(name).figures}
    assert drawings <= set(_VIEWS) | PICTURES | {"table"}


def test_long_curves_keep_their_ends():
    x = np.linspace(0, 1, 10 * MOST)
    shown = rows({"series": [{"x": x, "y": x**2, "kind": "line", "colour": "blue", "label": "y"}]})
    assert len(shown) == MOST
    assert (shown[0]["x"], shown[-1]["x"]) == (0, 1)


@pytest.mark.parametrize(
    ("error", "ends"),
    [(0.5, [(1.5, 2.5), (2.5, 3.5)]), ([[1, 1], [0, 2]], [(1, 2), (2, 5)]), ([1, 2], [(1, 3), (1, 5)])],
)
def test_error_bars(error, ends):
    series = {"x": [0, 1], "y": [2.0, 3.0], "error": error, "kind": "points", "colour": "blue", "label": "y"}
    assert [(row["low"], row["high"]) for row in rows({"series": [series]})] == ends


def test_what_is_not_finite_is_left_out_and_a_logarithm_needs_a_positive_number():
    series = {"x": [1, 2], "y": [np.nan, -1.0], "kind": "points", "colour": "blue", "label": "y"}
    made = spec({"x": "x", "y": "y", "log": "y", "series": [series]})
    assert [row["y"] for row in made["data"]["values"]] == [-1]
    assert made["layer"][0]["encoding"]["y"]["scale"].get("type") != "log"


def test_training_with_a_negative_trace():
    run = {"epoch": [0, 1, 10], "train_loss": [1, 0.1, 0.01], "test_accuracy": [0.5, 0.6, 1], "trace": [-1, 2, 3]}
    loss, accuracy, trace = view("training_curves", {"runs": [run, run], "stages": [5], "bound": 2.5})
    assert loss["log"] == "xy"
    assert accuracy["log"] == "x"
    assert spec(trace)["layer"][0]["encoding"]["y"]["scale"]["type"] == "symlog"
