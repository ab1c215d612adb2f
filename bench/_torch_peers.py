"""λ_max of a fully connected tanh net by the installed PyTorch libraries, each with its own products."""

import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from jax import Array

from steppe.problem import Problem

# PyHessian stops at a small change between two steps; the error is several times that change. hessian-eigenthings makes
# the given number of steps and ignores its tol. A user who does not know the truth needs 20 steps: then its flag
# `converged` for 1e-3 is true all along the edge of stability. 14 is the least even number of steps with an error below
# 1e-3, which is known only with the truth.
TOLERANCE, FLAGGED, FEWEST, MOST = 1e-4, 20, 14, 300

EIGENTHINGS = "hessian-eigenthings"

Work = Callable[[], tuple[float, int]]


def peers(problem: Problem, w: Array) -> dict[str, Work]:
    """The installed libraries by name; each function returns λ_max and the number of its products."""
    works: dict[str, tuple[str, Callable[[Problem, Array], tuple[float, int]]]] = {
        "PyHessian, tol 1e-4": ("pyhessian", _pyhessian),
        f"{EIGENTHINGS}, {FLAGGED} steps, as its flag asks": ("hessian_eigenthings", partial(_eigenthings, FLAGGED)),
        f"{EIGENTHINGS}, {FEWEST} steps, with hindsight": ("hessian_eigenthings", partial(_eigenthings, FEWEST)),
    }
    return {
        name: lambda work=work: work(problem, w)  # type: ignore[misc]
        for name, (module, work) in works.items()
        if find_spec(module) is not None
    }


def model(problem: Problem, w: Array) -> tuple[Any, Any, tuple[Any, Any]]:
    """The network at w, the loss half_mse and the data, in PyTorch."""
    import torch

    layers: list[Any] = []
    for W, b in problem.unravel(w):
        linear = torch.nn.Linear(*W.shape)
        linear.weight.data, linear.bias.data = torch.tensor(np.array(W.T)), torch.tensor(np.array(b))
        layers += [linear, torch.nn.Tanh()]
    # MSELoss is the mean over examples and outputs too, without the ½.
    mean, outputs = torch.nn.MSELoss(), problem.y.shape[1]
    data = (torch.tensor(np.array(problem.x)), torch.tensor(np.array(problem.y)))
    return torch.nn.Sequential(*layers[:-1]), lambda f, y: 0.5 * outputs * mean(f, y), data


def _pyhessian(problem: Problem, w: Array) -> tuple[float, int]:
    # Its package hides the module behind the class of the same name.
    theirs: Any = import_module("pyhessian.hessian")
    products, product = 0, theirs.hessian_vector_product

    def counted(*args: Any) -> Any:
        nonlocal products
        products += 1
        return product(*args)

    network, criterion, data = model(problem, w)
    theirs.hessian_vector_product = counted
    try:
        with warnings.catch_warnings():
            # PyTorch warns that the graph refers to itself and is freed late.
            warnings.simplefilter("ignore", UserWarning)
            values, _ = theirs.hessian(network, criterion, data=data, cuda=False).eigenvalues(MOST, TOLERANCE)
    finally:
        theirs.hessian_vector_product = product
    return float(values[0]), products


def _eigenthings(steps: int, problem: Problem, w: Array) -> tuple[float, int]:
    import hessian_eigenthings as theirs  # type: ignore[import-untyped]

    network, criterion, data = model(problem, w)
    operator = theirs.HessianOperator(network, [data], theirs.supervised_loss(criterion))
    found = theirs.lanczos(operator, k=1, max_iter=steps, which="LA", seed=0)
    return float(found.eigenvalues[0]), int(found.iterations)
