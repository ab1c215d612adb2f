"""An FCN, a CNN and a transformer, small, each in JAX and once more in PyTorch, with the same parameters."""

import jax
import jax.numpy as jnp
import numpy as np

import steppe

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


def problem(net, loss, dtype=np.float64):
    rng = np.random.default_rng(0)
    params = {k: (rng.normal(size=s) / np.sqrt(s[-1])).astype(dtype) for k, s in sorted(SHAPES[net].items())}
    x = rng.normal(size=(N, *INPUTS[net]))
    y = rng.integers(0, CLASSES, N) if loss == "cross_entropy" else rng.choice([-1.0, 1.0], size=(N, CLASSES))
    return steppe.Problem(PREDICT[net], params, x, y, LOSSES[loss])


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
