import numpy as np
import pytest
from families import tanh_net, two_layer

import steppe
from steppe import measures
from steppe.check import ArgumentError


def test_zero_one_error_by_hand():
    p = two_layer()
    f = np.asarray(p.predictions(p.w0))
    assert measures.zero_one_error(p, p.w0).value == (f * np.asarray(p.y) <= 0).mean()
    assert measures.accuracy(p, p.w0).value == 1 - measures.zero_one_error(p, p.w0).value


def test_an_output_of_zero_is_wrong():
    p = two_layer()
    assert measures.zero_one_error(p, np.zeros_like(p.w0)).value == 1.0


@pytest.mark.parametrize("loss", [steppe.losses.cross_entropy, steppe.losses.half_mse])
def test_classes_by_argmax(loss):
    p = tanh_net(loss=loss)
    f, y = np.asarray(p.predictions(p.w0)), np.asarray(p.y)
    classes = y if y.ndim == 1 else y.argmax(1)
    assert measures.zero_one_error(p, p.w0).value == (f.argmax(1) != classes).mean()


def test_loss():
    p = two_layer()
    assert measures.loss(p, p.w0).value == pytest.approx(float(p.loss(p.w0)), rel=1e-14)  # compiled sums reorder
    assert measures.loss(p, p.w0).is_exact


def test_norms_against_numpy():
    p = tanh_net()
    params = p.unravel(p.w0)
    W, b, V = (np.asarray(a) for a in (*params["hidden"], params["out"]))
    flat = np.concatenate([W.ravel(), b, V.ravel()])
    assert measures.norm(p, p.w0).value == pytest.approx(np.linalg.norm(flat), rel=1e-14)
    assert measures.norm(p, p.w0, order=1).value == pytest.approx(np.abs(flat).sum(), rel=1e-14)
    nuclear = sum(np.linalg.svd(M, compute_uv=False).sum() for M in (W, V))
    assert measures.norm(p, p.w0, order="nuclear").value == pytest.approx(nuclear, rel=1e-13)
    assert set(measures.layer_norms(p, p.w0)) == {"['hidden'][0]", "['hidden'][1]", "['out']"}


def test_unknown_order():
    p = two_layer()
    with pytest.raises(ArgumentError, match="order must be 1, 2 or 'nuclear'; got 3"):
        measures.norm(p, p.w0, order=3)
