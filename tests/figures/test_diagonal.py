"""Planes, triangles and period doubling: every number is drawn in its place."""

import numpy as np
import pytest

from steppe import figures

W1, W2 = np.linspace(0, 1, 5), np.linspace(0, 2, 6)
ONE = {"title": "t", "path": [[0.1, 0.1], [0.5, 0.2], [0.6, 0.9]], "end": [0.6, 0.9], "limit": 2.0,
       "points": [{"w": [0.3, 1.0], "label": "KKT"}]}  # fmt: skip
SHARED = {
    "title": "a title", "columns": 2, "w1": W1.tolist(), "w2": W2.tolist(),
    "sharpness": (W1[None] ** 2 + W2[:, None] ** 2).tolist(), "solutions": [[1.0, 0.0], [0.7, 0.7], [0.0, 1.0]],
    "flow": [[0.1, 0.1], [0.9, 0.2]],
}  # fmt: skip


def curves(axis):
    return [line.get_xydata().tolist() for line in axis.lines]


def test_every_number_of_a_plane_is_drawn_where_it_belongs():
    figure = figures.planes(SHARED | {"planes": [ONE, ONE | {"limit": None, "end": None, "points": []}, ONE]})
    first, second, third, spare = figure.axes[:4]
    solutions, flow, path, kkt, end = curves(first)
    assert solutions == SHARED["solutions"]
    assert flow == SHARED["flow"]
    assert path == ONE["path"]
    assert kkt == [[0.3, 1.0]]
    assert end == [[0.6, 0.9]]
    assert len(curves(second)) == 3
    (edge,) = [
        p for c in first.collections for p in c.get_paths() if len(p.vertices) > 5 and c is not first.collections[0]
    ]
    # Linear interpolation on so coarse a grid is off by a tenth of a cell.
    np.testing.assert_allclose(np.sum(edge.vertices**2, axis=1), 2.0, atol=0.1)
    assert not spare.axison
    assert third.get_xlabel() == "w₁"
    assert second.get_ylabel() == ""
    assert first.get_xlim() == (0, 1)
    assert [t.get_text() for t in figure.legends[0].get_texts()][3] == "sharpness = 2/η"


def test_figure_4_has_its_network_its_planes_and_the_risk():
    risk = {"x": "η", "y": "risk", "series": [{"x": [1, 2], "y": [3, 4], "kind": "points", "colour": "red"}]}
    figure = figures.diagonal(SHARED | {"planes": [ONE] * 4, "risk": risk})
    network, *planes = figure.axes[:6]
    assert not network.axison
    assert {"x₁", "x₂", "Σ", "w₁", "w₂"} <= {t.get_text() for t in network.texts}
    assert curves(planes[2]) == [[[1.0, 3.0], [2.0, 4.0]]]
    with pytest.raises(ValueError, match="zip"):
        figures.diagonal(SHARED | {"planes": [ONE] * 3, "risk": risk})


GRID = [[i / 4, j / 4, (4 - i - j) / 4] for i in range(5) for j in range(5 - i)]
TRIANGLE = {
    "title": "t", "corners": ["one", "two", "three"], "grid": GRID,
    "panels": [{"title": name, "values": [p[0] for p in GRID], "levels": [0.3, 0.6]} for name in ("sharpness", "risk")],
    "ends": [{"p": [1, 0, 0], "rate": 0.5}, {"p": [0, 0, 1], "rate": 1.5}],
    "flow": [[1 / 3] * 3, [1, 0, 0]], "kkt": [{"p": [0, 1, 0], "rate": 1.0}, {"p": [0, 0.5, 0.5], "rate": 2.0}],
}  # fmt: skip


def test_shares_are_placed_in_the_triangle():
    figure = figures.simplex(TRIANGLE)
    for axis in figure.axes[:2]:
        edge, flow, kkt = axis.lines[-3:]
        np.testing.assert_allclose(edge.get_xydata()[:3], [[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
        np.testing.assert_allclose(flow.get_xydata(), [[0.5, np.sqrt(3) / 6], [0, 0]])
        np.testing.assert_allclose(kkt.get_xydata(), [[1, 0], [0.75, np.sqrt(3) / 4]])
        dots = axis.collections[-1]
        np.testing.assert_allclose(dots.get_offsets(), [[0, 0], [0.5, np.sqrt(3) / 2]])
        assert dots.get_array().tolist() == [0.5, 1.5]
        assert {"one", "two", "three"} <= {t.get_text() for t in axis.texts}


DOUBLING = {
    "title": "t", "a": [0.9, 1.1, 1.3], "orbits": [[1.0, 1.0], [0.8, 1.2], []], "lyapunov": [-0.5, 0.3, None],
    "curves": [{"a": [0.9, 1.0], "z": [1.0, 1.0], "label": "the minimum"}], "places": [{"at": 1.0, "label": "edge"}],
}  # fmt: skip


def test_orbits_exponents_and_places():
    top, bottom = figures.bifurcation(DOUBLING).axes
    dots, curve, place = top.lines
    assert dots.get_xydata().tolist() == [[0.9, 1.0], [0.9, 1.0], [1.1, 0.8], [1.1, 1.2]]
    assert curve.get_xydata().tolist() == [[0.9, 1.0], [1.0, 1.0]]
    assert set(place.get_xdata()) == {1.0}
    exponents = bottom.lines[1].get_ydata()
    np.testing.assert_array_equal(exponents, [-0.5, 0.3, np.nan])
    assert [t.get_text() for t in top.texts] == ["edge"]
