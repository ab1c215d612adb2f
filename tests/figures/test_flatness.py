"""Rescalings of networks and spectral densities: every number is drawn in its place."""

import numpy as np

from steppe import figures

PANEL = {
    "title": "net", "factors": [1.0, 10.0],
    "sharpness": {"plain": [2.0, 2e6], "invariant": [1.0, 1.0]},
    "trace": {"plain": [4.0, 4e6], "invariant": [3.0, 3.003]},
}  # fmt: skip


def test_every_point_and_the_two_spreads():
    figure = figures.rescaling({"title": "t", "panels": [PANEL, PANEL]})
    axis = figure.axes[0]
    drawn = [line.get_ydata().tolist() for line in axis.lines]
    assert drawn == [PANEL[m][k] for m in ("sharpness", "trace") for k in ("plain", "invariant")]
    assert axis.get_yscale() == axis.get_xscale() == "log"
    assert axis.texts[0].get_text() == "as measured: times 1e6\nleast: within 1e-3"
    assert axis.get_ylim() == figure.axes[1].get_ylim()


GRID = np.linspace(-1, 10, 50)
SPECTRUM = {
    "title": "t", "grid": GRID.tolist(), "density": np.exp(-(GRID**2)).tolist(), "stderr": [1e-3] * 50,
    "sharpness": 9.0, "lower": 8.9, "upper": 9.1, "confidence": 0.99, "lr": 0.2,
}  # fmt: skip


def test_density_interval_and_limit_are_where_they_belong():
    axis = figures.spectrum(SPECTRUM).axes[0]
    curve, sharpness, limit = axis.lines
    np.testing.assert_allclose(curve.get_ydata(), np.maximum(SPECTRUM["density"], max(SPECTRUM["density"]) * 1e-6))
    assert set(sharpness.get_xdata()) == {9.0}
    assert set(limit.get_xdata()) == {10.0}
    assert axis.get_yscale() == "log"
    assert len(figures.spectrum(SPECTRUM | {"lr": None}).axes[0].lines) == 2
