"""Every network, loss and dynamics that kernels know, in plain numpy: gradients by hand, nothing fused or traced."""

from functools import cache

import numpy as np

from steppe._random import label_noise, step_key
from steppe.dynamics import SAM, LabelNoise, Projected
from steppe.networks import SimBN, SimLN


def sigmoid(t):
    return np.exp(-np.logaddexp(0, -t))


def activate(activation, h):
    """σ(h) and σ′(h)."""
    if activation.leak is None:
        return np.logaddexp(0, h), sigmoid(h)
    return np.where(h > 0, h, activation.leak * h), np.where(h > 0, 1.0, activation.leak)


def slopes(loss, f, y):
    """∂ℓ/∂f."""
    if loss.name == "logistic":
        return y * (loss.smoothing * sigmoid(y * f) - (1 - loss.smoothing) * sigmoid(-y * f))
    return {"mse": 2, "half_mse": 1}[loss.name] * (f - y)


def gradient(p, params, index, targets):
    """∇ of the mean loss of the examples `index` against `targets`."""
    net, x = p.predict, np.asarray(p.x, float)
    g = (_sim_bn if isinstance(net, SimBN) else _layered)(net, params, x, index, p.loss_function, targets)
    return g if net.bias else {name: a for name, a in g.items() if name != "b1"}


def residuals(p, w):
    """∂ℓ/∂f of every example at w."""
    net, params = p.predict, p.unravel(np.asarray(w))
    depth = len([name for name in params if name.startswith("W")])
    a, _ = activate(net.activation, _hidden(params, np.asarray(p.x)))
    for k in range(2, depth):
        a, _ = activate(net.activation, a @ params[f"W{k}"].T)
    if isinstance(net, SimLN):
        a = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), net.eps)
    if isinstance(net, SimBN):
        mean = (a**2).mean(0)
        a = params["gamma"] * a / np.sqrt(np.where(mean > 0, mean, 1))
    return slopes(p.loss_function, a @ params[f"W{depth}"], np.asarray(p.y))


def _hidden(params, x):
    return x @ params["W1"].T + params.get("b1", 0)


def _layered(net, params, x, index, loss, targets):
    x, depth = x[index], len([name for name in params if name.startswith("W")])
    inputs, bends = [x], []
    for k in range(1, depth):
        a, bend = activate(net.activation, _hidden(params, x) if k == 1 else inputs[-1] @ params[f"W{k}"].T)
        inputs.append(a)
        bends.append(bend)
    last, norm = params[f"W{depth}"], 1.0
    if isinstance(net, SimLN):
        length = np.linalg.norm(a, axis=1, keepdims=True)
        norm = np.maximum(length, net.eps)
    unit = a / norm
    r = slopes(loss, unit @ last, targets)[:, None] / len(index)
    g = {f"W{depth}": (r * unit).sum(0)}
    back = r * last / norm
    if isinstance(net, SimLN):
        back -= np.where(length > net.eps, r * (unit @ last)[:, None] * unit / norm, 0)
    for k in range(depth - 1, 0, -1):
        delta = back * bends[k - 1]
        g[f"W{k}"], back = delta.T @ inputs[k - 1], delta @ params[f"W{k}"]
    return g | {"b1": delta.sum(0)}


def _sim_bn(net, params, x, index, loss, targets):
    n, gamma, v = len(x), params["gamma"], params["W2"]
    a, bend = activate(net.activation, _hidden(params, x))
    mean = (a**2).mean(0)
    inverse = np.where(mean > 0, 1, 0) / np.sqrt(np.where(mean > 0, mean, 1))
    r = np.zeros(n)
    r[index] = slopes(loss, (a * inverse)[index] @ (gamma * v), targets) / len(index)
    along = (r @ a) * inverse
    back = gamma * v * inverse * (r[:, None] - a * (along * inverse / n))
    delta = back * bend
    return {"W1": delta.T @ x, "b1": delta.sum(0), "gamma": v * along, "W2": gamma * along}


def train(p, dynamics, orders, steps, key):
    """`steps` steps from p.w0; the flat vector."""
    core, names, norm, sigma = dynamics, (), 0.0, 0.0
    while isinstance(core, LabelNoise | Projected):
        if isinstance(core, Projected):
            names, norm = core.names, float(core.norm)
        else:
            sigma = float(core.sigma)
        core = core.dynamics
    lr, decay = float(core.lr), float(core.weight_decay)
    n, y = len(p), np.asarray(p.y, float)
    size = min(core.batch_size or n, n)
    params = project({name: np.asarray(a, float) for name, a in p.unravel(np.asarray(p.w0)).items()}, names, norm)
    per_epoch = -(-n // size)
    for t in range(steps):
        row = np.arange(n) if orders is None else orders[t // per_epoch]
        index = row[t % per_epoch * size :][:size]
        targets = y[index]
        if sigma:
            targets = targets + noise(key, t, size, sigma, p.y.dtype)[: len(index)]
        g = gradient(p, params, index, targets)
        if isinstance(core, SAM):
            long = np.sqrt(sum((a**2).sum() for a in g.values()))
            raised = {name: a + float(core.rho) * g[name] / (long or 1.0) for name, a in params.items()}
            g = gradient(p, raised, index, targets)
        params = project({name: a - lr * (g[name] + decay * a) for name, a in params.items()}, names, norm)
    return np.concatenate([params[name].ravel() for name in sorted(params)])


@cache
def noise(key, t, size, sigma, dtype):
    """That of step t, whatever the network."""
    return np.asarray(label_noise(step_key(key, t), size, sigma, np.empty(0, dtype)))


def project(params, names, norm):
    """The parameters called `names` scaled, together, to `norm`."""
    long = np.sqrt(sum((params[name] ** 2).sum() for name in names))
    return params | {name: params[name] * norm / long for name in names}
