"""The two backends on one network: the JAX networks of steppe, and PyTorch's modules with the same parameters."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe import losses, measures
from steppe.activations import softplus, tanh
from steppe.curvature import empirical_fisher, fisher, gauss_newton, hessian, residual
from steppe.networks import CNN, FCN, ResNet, ViT
from steppe.networks._convolutional import apply_batch_norm

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

RNG = np.random.default_rng(5)


class Peer(nn.Module):
    """A network of steppe written with PyTorch's functions: its parameters are the arrays of the pytree, in order."""

    def __init__(self, params, forward, dtype):
        super().__init__()
        leaves, self.structure = jax.tree.flatten(params)
        self.arrays = nn.ParameterList([torch.tensor(np.asarray(a), dtype=dtype) for a in leaves])
        self.forward_of = forward

    def forward(self, x):
        return self.forward_of(jax.tree.unflatten(self.structure, list(self.arrays)), x)


def norm(p, h):
    return functional.batch_norm(h, None, None, p["gamma"], p["beta"], training=True)


def fcn(params, x):
    h = x.flatten(1)
    for p in params[:-1]:
        h = torch.tanh(functional.linear(h, p["W"], p["b"]))
    return functional.linear(h, params[-1]["W"], params[-1]["b"])


def cnn(params, x):
    h = x.permute(0, 3, 1, 2)
    for p in params["convolutions"]:
        h = functional.max_pool2d(functional.softplus(norm(p, functional.conv2d(h, p["W"], p["b"], padding=1))), 2)
    W = params["linear"]["W"].reshape(3, *h.shape[2:], h.shape[1]).permute(0, 3, 1, 2).flatten(1)
    return functional.linear(h.flatten(1), W, params["linear"]["b"])


def resnet(params, x):
    def layer(p, h):
        return norm(p, functional.conv2d(h, p["W"], padding=1))

    h = torch.tanh(layer(params["first"], x.permute(0, 3, 1, 2)))
    for stage in params["stages"]:
        for block in stage:
            skip = h
            if "skip" in block:
                h = functional.avg_pool2d(h, 2)
                skip = norm(block["skip"], h)
                skip = functional.pad(skip, (0, 0, 0, 0, 0, len(block["second"]["gamma"]) - skip.shape[1]))
            h = torch.tanh(skip + layer(block["second"], torch.tanh(layer(block["first"], h))))
    return functional.linear(h.mean(dim=(2, 3)), params["linear"]["W"], params["linear"]["b"])


def attention(p, h, heads=2):
    n, t, d = h.shape
    parts = functional.linear(h, p["inward"]["W"], p["inward"]["b"]).chunk(3, -1)
    q, k, v = (a.reshape(n, t, heads, d // heads).transpose(1, 2) for a in parts)
    mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
    return functional.linear(mixed, p["outward"]["W"], p["outward"]["b"])


def layer_norm(p, h):
    return functional.layer_norm(h, h.shape[-1:], p["gamma"], p["beta"])


def vit(params, x):
    n, rows, columns, _ = x.shape
    patches = x.reshape(n, rows // 2, 2, columns // 2, 2, -1).permute(0, 1, 3, 2, 4, 5).flatten(3).flatten(1, 2)
    h = functional.linear(patches, params["patches"]["W"], params["patches"]["b"])
    h = torch.cat([params["token"].expand(n, 1, -1), h], dim=1) + params["positions"]
    for p in params["layers"]:
        h = h + attention(p["attention"], layer_norm(p["norm1"], h))
        wide = torch.tanh(functional.linear(layer_norm(p["norm2"], h), p["widen"]["W"], p["widen"]["b"]))
        h = h + functional.linear(wide, p["narrow"]["W"], p["narrow"]["b"])
    h = layer_norm(params["norm"], h[:, 0])
    return functional.linear(h, params["linear"]["W"], params["linear"]["b"])


# The network of steppe, its peer, and the shape of an input.
NETWORKS = {
    "fcn": (FCN((5, 4), activation=tanh), fcn, (2, 3)),
    "cnn": (CNN((2, 3), batch_norm=True, activation=softplus), cnn, (4, 4, 1)),
    "resnet": (ResNet((2, 3), blocks=1, activation=tanh), resnet, (4, 4, 1)),
    "vit": (ViT(patch=2, dim=4, layers=1, heads=2, hidden=5, activation=tanh), vit, (4, 4, 1)),
}


def pair(name, *, dtype=np.float64, loss=losses.cross_entropy, theirs=None, n=7):
    """The problem in JAX and in PyTorch, at the same parameters."""
    network, forward, shape = NETWORKS[name]
    rng = np.random.default_rng(1)
    params = network.init(shape, 3, rng, np.float64)
    params = jax.tree.map(lambda a: (a + 0.3 * rng.normal(size=a.shape)).astype(dtype), params)
    x, y = rng.normal(size=(n, *shape)).astype(dtype), rng.integers(0, 3, n)
    if loss is not losses.cross_entropy:
        y = np.eye(3, dtype=dtype)[y]
    if loss.name == "logistic":
        y = 2 * y - 1
    kind = {np.float64: torch.float64, np.float32: torch.float32}[dtype]
    model = Peer(params, forward, kind)
    targets = torch.tensor(y if loss.name != "logistic" else (y + 1) / 2)
    other = steppe.torch.Problem(model, (torch.tensor(x), targets), theirs or nn.CrossEntropyLoss())
    return steppe.Problem(network, params, x, y, loss), other


def close(a, b, within):
    np.testing.assert_allclose(a, b, rtol=0, atol=within * float(np.abs(b).max()))


# Some hundred sums one after another, each off by 16 ulp; curvature amplifies by the condition of the layers.
WITHIN = {np.float64: 1e-11, np.float32: 2e-3}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_hessian_of_every_network(name):
    ours, theirs = pair(name)
    np.testing.assert_array_equal(ours.w0, theirs.w0)
    close(theirs.loss(theirs.w0), ours.loss(ours.w0), WITHIN[np.float64])
    v = RNG.normal(size=ours.w0.size)
    close(hessian(theirs)(v), hessian(ours)(v), WITHIN[np.float64])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_matrix(dtype):
    ours, theirs = pair("fcn", dtype=dtype)
    close(theirs.gradient(theirs.w0), jax.grad(ours.loss)(ours.w0), WITHIN[dtype])
    v = RNG.normal(size=ours.w0.size)
    for kind in (hessian, gauss_newton, residual, fisher, empirical_fisher):
        close(kind(theirs)(v), kind(ours)(v), WITHIN[dtype])


@pytest.mark.parametrize(
    ("loss", "theirs"),
    [
        (losses.mse, nn.MSELoss()),
        (losses.half_mse, lambda f, y: 0.5 * ((f - y) ** 2).sum(1).mean()),
        (losses.logistic(), nn.BCEWithLogitsLoss()),
    ],
    ids=["mse", "half_mse", "logistic"],
)
def test_losses(loss, theirs):
    ours, other = pair("fcn", loss=loss, theirs=theirs)
    v = RNG.normal(size=ours.w0.size)
    for kind in [gauss_newton, empirical_fisher] if loss is losses.half_mse else [gauss_newton, fisher]:
        close(kind(other)(v), kind(ours)(v), WITHIN[np.float64])
    for measure in (measures.loss, measures.accuracy, measures.margin):
        np.testing.assert_allclose(measure(other).value, measure(ours).value, rtol=1e-12)


def overlap(a, b):
    # Exact values differ by rounding.
    return max(a.lower, b.lower) <= min(a.upper, b.upper) + 1e-11 * abs(a.value)


# Every measure, on both: exact ones agree, estimates have intervals that meet.
MEASURES = {
    "loss": measures.loss,
    "accuracy": measures.accuracy,
    "zero_one_error": measures.zero_one_error,
    "margin": measures.margin,
    "norm": measures.norm,
    "norm of order 1": partial(measures.norm, order=1),
    "sharpness": measures.sharpness,
    "sharpness of the Gauss-Newton matrix": partial(measures.sharpness, curvature=gauss_newton),
    "spectral_norm": measures.spectral_norm,
    "trace": measures.trace,
    "fisher_sharpness": measures.fisher_sharpness,
    "empirical fisher_sharpness": partial(measures.fisher_sharpness, empirical=True),
    "fisher_trace": measures.fisher_trace,
    "empirical fisher_trace": partial(measures.fisher_trace, empirical=True),
    "adaptive_sharpness": partial(measures.adaptive_sharpness, accuracy=steppe.Accuracy(0.5, max_matvecs=200)),
    "random_direction_sharpness": partial(
        measures.random_direction_sharpness, sigma=0.1, accuracy=steppe.Accuracy(0.5, max_matvecs=200)
    ),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure(measure):
    ours, theirs = (MEASURES[measure](p) for p in pair("fcn"))
    assert overlap(ours, theirs)
    if ours.is_exact:
        np.testing.assert_allclose(theirs.value, ours.value, rtol=1e-11)
    for part, value in ours.parts.items():
        np.testing.assert_allclose(theirs.parts[part].value, value.value, rtol=1e-10)


def test_the_worst_adaptive_sharpness():
    """The same ascents from other random points: both come to rest at a local maximum, the first along the gradient."""
    ours, theirs = (measures.worst_adaptive_sharpness(p, restarts=0) for p in pair("fcn"))
    np.testing.assert_allclose(theirs.value, ours.value, rtol=1e-8)
    assert theirs.matvecs == ours.matvecs


def test_measures_of_several_values():
    ours, theirs = pair("fcn")
    for a, b in zip(measures.top_eigenvalues(ours, k=3), measures.top_eigenvalues(theirs, k=3), strict=True):
        assert overlap(a, b)
    norms = [list(measures.layer_norms(p).values()) for p in (ours, theirs)]
    np.testing.assert_allclose([e.value for e in norms[1]], [e.value for e in norms[0]], rtol=1e-12)
    densities = [measures.density(p, probes=4, steps=10) for p in (ours, theirs)]
    np.testing.assert_allclose(densities[1].nodes, densities[0].nodes, atol=1e-9)
    moved = np.asarray(ours.w0) + 1
    np.testing.assert_allclose(
        measures.distance(theirs, moved).value, measures.distance(ours, jnp.asarray(moved)).value, rtol=1e-12
    )


def test_the_tracker():
    tracks, (ours, theirs) = [measures.Tracker(), measures.Tracker()], pair("fcn")
    for k in range(4):
        w = np.asarray(ours.w0) * (1 + 0.01 * k)
        a, b = tracks[0](ours, jnp.asarray(w)), tracks[1](theirs, w)
        # The same products and the same random vectors.
        np.testing.assert_allclose(b.value, a.value, rtol=1e-9)
        assert a.matvecs == b.matvecs


def test_float32_increases_are_computed_in_float64():
    """In float32 the rounding of two losses exceeds their difference."""
    _, theirs = pair("fcn", dtype=np.float32)
    _, wide = pair("fcn")
    found, truth = (
        measures.random_direction_sharpness(p, sigma=1e-4, accuracy=steppe.Accuracy(0.5, max_matvecs=200))
        for p in (theirs, wide)
    )
    assert overlap(found, truth)
    assert found.upper - found.lower < 2 * (truth.upper - truth.lower)


def test_the_peer_of_batch_normalisation():
    p, h = {"gamma": RNG.normal(size=3), "beta": RNG.normal(size=3)}, RNG.normal(size=(4, 5, 5, 3))
    theirs = norm({k: torch.tensor(a) for k, a in p.items()}, torch.tensor(h).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(apply_batch_norm(p, jnp.asarray(h)), theirs, rtol=1e-12, atol=1e-12)
