"""GD, SGD and SAM of any batch size, for every network that tells kernels its gradient.

Parameters are one flat vector, padding included, so a step of any of them is a few lines; the work is in `gradient`.
"""

from typing import Any

import numpy as np

from steppe.dynamics.kernels.compiled import kernel, part
from steppe.dynamics.kernels.sums import dot


def gradient(network: Any, w: Any, index: Any, y: Any, targets: Any, loss: Any, g: Any) -> Any:
    """g = ∇ of the mean loss of the examples `index` against `targets`; returns their mean loss against y.

    Each kind of network overloads it for compiled code, the only place where it can be called.
    """
    raise TypeError("gradient is for compiled code: call it inside a kernel, on a network that overloads it")


@part
def length(g):  # type: ignore[no-untyped-def]
    """‖g‖, without underflow of the squares of a small g or overflow of those of a large one."""
    squares, largest = dot(g, g, len(g)), g.dtype.type(0)
    if np.isfinite(squares) and squares > g.dtype.type(1e-30):
        return np.sqrt(squares)
    for k in range(len(g)):
        largest = max(largest, abs(g[k]))
    if not np.isfinite(largest) or largest == 0:
        return largest
    scaled = g / largest
    return largest * np.sqrt(dot(scaled, scaled, len(g)))


@kernel
def descend(network, w, y, noise, loss, orders, size, offset, count, full, target, lr, rho, decay, held, norm):  # type: ignore[no-untyped-def]
    """`count` steps in place; `full` means that every batch is the whole data. Returns (steps done, halt).

    Row t of `noise` is added to the labels of step t, where there is one; the first `held` numbers of w are scaled
    to `norm` after every step.
    """
    n, zero = orders.shape[1], w.dtype.type(0)
    per_epoch = -(-n // size)
    g, point, targets = np.zeros_like(w), np.zeros_like(w), np.zeros(size, w.dtype)
    for t in range(count):
        epoch, position = (0, 0) if full else ((offset + t) // per_epoch, (offset + t) % per_epoch)
        index = orders[epoch, position * size : min((position + 1) * size, n)]
        for i in range(len(index)):
            targets[i] = y[index[i]] + (noise[t, i] if len(noise) else zero)
        for ascended in range(2 if rho > zero else 1):
            mean = gradient(network, point if ascended else w, index, y, targets, loss, g)
            if ascended:
                break
            if not np.isfinite(mean):
                return t, 2
            if full and mean <= target:
                return t, 1
            if rho > zero:
                norm_g = length(g)
                # An already fitted batch has g = 0, and 0/0 is NaN: it gets no perturbation.
                c = rho / norm_g if norm_g > zero else zero
                for k in range(len(w)):
                    point[k] = w[k] + c * g[k]
        for k in range(len(w)):
            point[k], w[k] = w[k], decay * w[k] - lr * g[k]
        if held:
            long = length(w[:held])
            factor = norm / long if long > zero else zero
            for k in range(held):
                w[k] *= factor
        if full and _equal(w, point):
            return t, 3
    return count, 0


@part
def _equal(a, b):  # type: ignore[no-untyped-def]
    same = True
    for k in range(len(a)):
        same &= a[k] == b[k]
    return same
