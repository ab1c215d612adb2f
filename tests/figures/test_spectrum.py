import numpy as np

from steppe import figures

GRID = np.linspace(-1, 10, 50)
NUMBERS = {
    "title": "t", "grid": GRID.tolist(), "density": np.exp(-(GRID**2)).tolist(), "stderr": [1e-3] * 50,
    "sharpness": 9.0, "lower": 8.9, "upper": 9.1, "confidence": 0.99, "lr": 0.2,
}  # fmt: skip


def test_density_interval_and_limit_are_where_they_belong():
    axis = figures.spectrum(NUMBERS).axes[0]
    curve, sharpness, limit = axis.lines
    np.testing.assert_allclose(curve.get_ydata(), np.maximum(NUMBERS["density"], max(NUMBERS["density"]) * 1e-6))
    assert set(sharpness.get_xdata()) == {9.0}
    assert set(limit.get_xdata()) == {10.0}
    assert axis.get_yscale() == "log"
    assert len(figures.spectrum(NUMBERS | {"lr": None}).axes[0].lines) == 2
