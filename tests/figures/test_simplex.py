import numpy as np

from steppe import figures

GRID = [[i / 4, j / 4, (4 - i - j) / 4] for i in range(5) for j in range(5 - i)]
NUMBERS = {
    "title": "t", "corners": ["one", "two", "three"], "grid": GRID,
    "panels": [{"title": name, "values": [p[0] for p in GRID], "levels": [0.3, 0.6]} for name in ("sharpness", "risk")],
    "ends": [{"p": [1, 0, 0], "rate": 0.5}, {"p": [0, 0, 1], "rate": 1.5}],
    "flow": [[1 / 3] * 3, [1, 0, 0]], "kkt": [{"p": [0, 1, 0], "rate": 1.0}, {"p": [0, 0.5, 0.5], "rate": 2.0}],
}  # fmt: skip


def test_shares_are_placed_in_the_triangle():
    figure = figures.simplex(NUMBERS)
    for axis in figure.axes[:2]:
        edge, flow, kkt = axis.lines[-3:]
        np.testing.assert_allclose(edge.get_xydata()[:3], [[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
        np.testing.assert_allclose(flow.get_xydata(), [[0.5, np.sqrt(3) / 6], [0, 0]])
        np.testing.assert_allclose(kkt.get_xydata(), [[1, 0], [0.75, np.sqrt(3) / 4]])
        dots = axis.collections[-1]
        np.testing.assert_allclose(dots.get_offsets(), [[0, 0], [0.5, np.sqrt(3) / 2]])
        assert dots.get_array().tolist() == [0.5, 1.5]
        assert {"one", "two", "three"} <= {t.get_text() for t in axis.texts}
