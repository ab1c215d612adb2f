import numpy as np

from steppe import figures

NUMBERS = {
    "title": "t", "a": [0.9, 1.1, 1.3], "orbits": [[1.0, 1.0], [0.8, 1.2], []], "lyapunov": [-0.5, 0.3, None],
    "curves": [{"a": [0.9, 1.0], "z": [1.0, 1.0], "label": "the minimum"}], "places": [{"at": 1.0, "label": "edge"}],
}  # fmt: skip


def test_orbits_exponents_and_places():
    top, bottom = figures.bifurcation(NUMBERS).axes
    dots, curve, place = top.lines
    assert dots.get_xydata().tolist() == [[0.9, 1.0], [0.9, 1.0], [1.1, 0.8], [1.1, 1.2]]
    assert curve.get_xydata().tolist() == [[0.9, 1.0], [1.0, 1.0]]
    assert set(place.get_xdata()) == {1.0}
    exponents = bottom.lines[1].get_ydata()
    np.testing.assert_array_equal(exponents, [-0.5, 0.3, np.nan])
    assert [t.get_text() for t in top.texts] == ["edge"]
