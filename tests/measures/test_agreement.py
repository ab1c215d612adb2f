"""Independent code: curvlinops on PyTorch, matfree, and sums over labels, for an FCN, a CNN and a transformer."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles.dense_curvature import assert_close

import steppe
from steppe import Accuracy, measures
from steppe import curvature as operators

# An FCN, a CNN and a transformer, small, each in JAX and once more in PyTorch with the same parameters.

N, CLASSES = 6, 3


def fcn(params, x):
    return jnp.tanh(x @ params["W1"].T + params["b1"][None]) @ params["W2"].T + params["b2"][None]


def cnn(params, x):
    """(n, 1, 6, 6) → two filters of 3 × 3 → relu → 2 × 2 max pooling → linear."""
    h = jax.lax.conv_general_dilated(x, params["filters"], (1, 1), "VALID") + params["bias"][None, :, None, None]
    h = jax.lax.reduce_window(jax.nn.relu(h), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return h.reshape(h.shape[0], -1) @ params["out"].T


def transformer(params, x):
    """(n, 4, 5) tokens → layer norm → one head of attention → relu layer → mean over tokens."""
    centred = x - x.mean(-1, keepdims=True)
    h = centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * params["scale"][None, None]
    q, k, v = (h @ params[name] for name in ("Q", "K", "V"))
    h = x + jax.nn.softmax(q @ k.transpose(0, 2, 1) / 5**0.5) @ v
    h = h + jax.nn.relu(h @ params["up"]) @ params["down"]
    return h.mean(1) @ params["out"]


SHAPES = {
    "fcn": {"W1": (5, 4), "b1": (5,), "W2": (CLASSES, 5), "b2": (CLASSES,)},
    "cnn": {"filters": (2, 1, 3, 3), "bias": (2,), "out": (CLASSES, 8)},
    "transformer": {
        "scale": (5,),
        "Q": (5, 5),
        "K": (5, 5),
        "V": (5, 5),
        "up": (5, 6),
        "down": (6, 5),
        "out": (5, CLASSES),
    },
}
INPUTS = {"fcn": (4,), "cnn": (1, 6, 6), "transformer": (4, 5)}
PREDICT = {"fcn": fcn, "cnn": cnn, "transformer": transformer}
LOSSES = {
    "mse": steppe.losses.mse,
    "half_mse": steppe.losses.half_mse,
    "cross_entropy": steppe.losses.cross_entropy,
    "logistic": steppe.losses.logistic(smoothing=0.1),
}


@cache
def problem(net, loss, dtype):
    rng = np.random.default_rng(0)
    params = {k: (rng.normal(size=s) / np.sqrt(s[-1])).astype(dtype) for k, s in sorted(SHAPES[net].items())}
    x = rng.normal(size=(N, *INPUTS[net]))
    y = rng.integers(0, CLASSES, N) if loss == "cross_entropy" else rng.choice([-1.0, 1.0], size=(N, CLASSES))
    made = steppe.Problem(PREDICT[net], params, x, y, LOSSES[loss])
    assert made.w0.dtype == dtype  # a division by a float64 would widen it unnoticed
    return made


def in_torch(net, loss, p):
    """(module, loss, parameters in our order, data, factor): factor × their loss is ours."""
    import torch
    from torch.nn import functional as F  # noqa: N812 (its usual name)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, value in p.unravel(p.w0).items():
                setattr(self, name, torch.nn.Parameter(torch.tensor(np.array(value))))

        def forward(self, x):
            if net == "fcn":
                return F.linear(torch.tanh(F.linear(x, self.W1, self.b1)), self.W2, self.b2)
            if net == "cnn":
                return F.linear(F.max_pool2d(F.relu(F.conv2d(x, self.filters, self.bias)), 2).flatten(1), self.out)
            h = F.layer_norm(x, (5,), self.scale)
            h = x + torch.softmax(h @ self.Q @ (h @ self.K).transpose(1, 2) / 5**0.5, -1) @ (h @ self.V)
            return (h + F.relu(h @ self.up) @ self.down).mean(1) @ self.out

    x, y = (torch.tensor(np.array(a)) for a in (p.x, p.y))
    criterion, target, factor = {
        "mse": (torch.nn.MSELoss(), y, 1.0),
        "half_mse": (torch.nn.MSELoss(), y, CLASSES / 2),
        "cross_entropy": (torch.nn.CrossEntropyLoss(), y, 1.0),
        # Smoothing 0.1: the label +1 is the probability 0.9.
        "logistic": (torch.nn.BCEWithLogitsLoss(), 0.5 + 0.4 * y, 1.0),
    }[loss]
    module = Net()
    params = [getattr(module, name) for name in sorted(SHAPES[net])]
    return module, criterion, params, [(x, target)], factor


# Every loss and every network in both precisions, and eight of the twelve pairs of them: a network enters a matrix by
# its Jacobian only and a loss by its derivatives in the three outputs, so that what can go wrong is in the one or the
# other. The operators of every loss on an FCN are in test_operators.py too.
ALL = pytest.mark.parametrize(
    ("net", "loss", "dtype"),
    [
        ("fcn", "mse", np.float64),
        ("fcn", "half_mse", np.float32),
        ("fcn", "logistic", np.float32),
        ("cnn", "half_mse", np.float64),
        ("cnn", "logistic", np.float64),
        ("cnn", "cross_entropy", np.float32),
        ("transformer", "mse", np.float32),
        ("transformer", "cross_entropy", np.float64),
    ],
)


def random_vector(p):
    return np.random.default_rng(1).normal(size=p.w0.size).astype(p.w0.dtype)


def agree(curvature, p, product, factor=1.0):
    """To the rounding of products of ‖A‖ ‖v‖, with ‖A‖ from the product itself."""
    v = random_vector(p)
    expected = factor * product(v)
    # Some 10³ roundings in the network and as many in the other one.
    assert_close(curvature(p, p.w0).matvec(v), expected, size=np.linalg.norm(expected), ulps=512)


@ALL
def test_curvlinops(net, loss, dtype):
    """Hessian, Gauss-Newton and empirical Fisher matrix of all losses.

    Its empirical Fisher matrix takes each output of a loss that is a mean over outputs for an example of its own, but
    adds up their gradients: c times ours. Its true Fisher matrix is a sample; the exact one is the Gauss-Newton matrix
    for these losses (Martens 2020, section 9).
    """
    curvlinops, torch = (pytest.importorskip(name) for name in ("curvlinops", "torch"))
    p = problem(net, loss, dtype)
    *parts, factor = in_torch(net, loss, p)
    squared = factor**2 / (1 if loss == "cross_entropy" else CLASSES)
    for curvature, theirs, scale in (
        (operators.hessian, curvlinops.HessianLinearOperator, factor),
        (operators.gauss_newton, curvlinops.GGNLinearOperator, factor),
        (operators.fisher, curvlinops.GGNLinearOperator, factor),
        (operators.empirical_fisher, curvlinops.EFLinearOperator, squared),
    ):
        matrix = theirs(*parts, check_deterministic=False)
        agree(curvature, p, lambda v, matrix=matrix: (matrix @ torch.tensor(v)).numpy(), scale)


@ALL
def test_the_true_fisher_matrix_sums_over_labels(net, loss, dtype):
    """Σ_y P(y) (J_iᵀ∇ℓ)(J_iᵀ∇ℓ)ᵀ, by no closed form of the covariance; matfree and curvlinops have none to compare."""
    p, wide = problem(net, loss, dtype), problem(net, loss, np.float64)
    f, J = _outputs(wide.predict, wide.unravel, wide.x, jnp.asarray(p.w0, np.float64))
    total = np.zeros(p.w0.size)
    v = random_vector(p)
    for i in range(N):
        for weight, slope in _scores(loss, np.asarray(f[i])):
            g = slope @ np.asarray(J[i])
            total += weight * g * (g @ v) / N
    agree(operators.fisher, p, lambda v: total)


@cache
def _jacobian(predict, unravel):
    return jax.jit(lambda w, x: (predict(unravel(w), x), jax.jacrev(lambda v: predict(unravel(v), x))(w)))


def _outputs(predict, unravel, x, w):
    return _jacobian(predict, unravel)(w, x)


def _scores(loss, f):
    """(P(y), ∇_f of −log P(y)) for labels with the moments of the model."""
    c, e = len(f), np.eye(len(f))
    if loss in ("mse", "half_mse"):
        # f ± √c σ e_j, each as likely, have mean f and covariance σ² I; the slope is (f − y)/σ².
        variance = c / 2 if loss == "mse" else 1.0
        return [(1 / (2 * c), sign * np.sqrt(c / variance) * e[j]) for j in range(c) for sign in (-1, 1)]
    if loss == "cross_entropy":
        odds = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
        return [(odds[k], odds - e[k]) for k in range(c)]
    # The mean over outputs of the matrices of each.
    odds = 1 / (1 + np.exp(-f))
    return [(q / c, r * e[j]) for j in range(c) for q, r in ((odds[j], odds[j] - 1), (1 - odds[j], odds[j]))]


@ALL
def test_matfree(net, loss, dtype):
    """Its Lanczos on its own product, jvp of grad, and ours."""
    decomp, eig = (pytest.importorskip(f"matfree.{name}") for name in ("decomp", "eig"))
    p = problem(net, loss, dtype)

    @jax.jit
    def largest(start):
        def product(v):
            return jax.jvp(jax.grad(p.loss), (p.w0,), (v,))[1]

        return eig.eigh_partial(decomp.tridiag_sym(20))(product, start)[0].max()

    expected, rounding = float(largest(random_vector(p))), 64 * float(np.finfo(dtype).eps)
    ours = measures.sharpness(p, accuracy=Accuracy(max(1e-9, 4 * rounding)))
    accuracy = 1e-6 + 4 * rounding  # 20 steps of theirs, without a stopping rule
    assert ours.value == pytest.approx(expected, rel=accuracy)
    assert ours.lower <= expected * (1 + accuracy)
    assert ours.upper >= expected * (1 - rounding)
