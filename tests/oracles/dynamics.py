"""Dense, slow, obvious: what the fast code is compared with."""

import jax
import numpy as np


def dense_hessian(problem, w):
    """∇²L(w) by autodiff, all of it."""
    return np.asarray(jax.jit(jax.hessian(problem.loss))(w))


def gauss_newton(problem, w):
    """Jᵀ (∇²_f L) J from the dense Jacobian of all outputs."""
    f = problem.predictions(w)
    J = np.asarray(jax.jit(jax.jacrev(lambda v: problem.predictions(v).ravel()))(w))
    bend = np.asarray(jax.jit(jax.hessian(lambda g: problem.loss_function(g.reshape(f.shape), problem.y)))(f.ravel()))
    return J.T @ bend @ J


def numpy_two_layer_gradient(params, x, y, scale):
    """The gradient of scale/2 · mean (f − y)² of a two-layer ReLU net, written out by hand."""
    W1, b1, W2 = params["W1"], params.get("b1"), params["W2"]
    h = x @ W1.T + (0 if b1 is None else b1)
    a, active = np.maximum(h, 0), h > 0
    r = scale * (a @ W2 - y) / len(y)
    delta = r[:, None] * active * W2
    gradient = {"W1": delta.T @ x, "W2": a.T @ r}
    return gradient if b1 is None else gradient | {"b1": delta.sum(0)}


def numpy_sam(params, x, y, batches, *, lr, rho, decay, scale):
    """SAM step by step, nothing fused; rho = 0 is gradient descent."""
    params = {name: a.copy() for name, a in params.items()}
    for index in batches:
        g = numpy_two_layer_gradient(params, x[index], y[index], scale)
        norm = np.sqrt(sum((a * a).sum() for a in g.values()))
        factor = rho / norm if norm > 0 else 0.0
        raised = {name: params[name] + factor * g[name] for name in params}
        g = numpy_two_layer_gradient(raised, x[index], y[index], scale)
        params = {name: params[name] - lr * (g[name] + decay * params[name]) for name in params}
    return params
