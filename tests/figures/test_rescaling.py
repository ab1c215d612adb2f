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
