"""A torch problem on random groups of its examples: what the error of the data sample is read off."""

import copy
from typing import Any

import numpy as np
import torch

from steppe import check
from steppe.torch._data import Batches, Streamed
from steppe.torch._problem import Problem


def groups(problem: Problem, count: int, *, seed: int) -> tuple[Problem, ...]:
    """The same network and loss on `count` disjoint random groups of examples, all of one size."""
    size = len(problem) // count
    if size < 1:
        check.refuse("count", f"at most the number of examples, {len(problem)}", count, "Take fewer groups.")
    if problem.loss_function.sums:
        remedy = 'Take reduction="mean".'
        check.refuse("groups", "of a loss that is a mean", "a loss that sums over examples", remedy)
    if isinstance(problem.batches, Streamed):
        remedy = "Pass a larger memory to steppe.torch.Problem."
        check.refuse("groups", "of data that fit into memory", "data that are loaded again at every pass", remedy)
    if not problem.alone:
        remedy = "Call model.eval() for batch normalisation with fixed statistics."
        check.refuse("groups", "of examples that do not see each other", "a network with batch statistics", remedy)
    order = np.random.default_rng(seed).permutation(len(problem))
    return tuple(_only(problem, order[k * size : (k + 1) * size]) for k in range(count))


def _only(problem: Problem, examples: Any) -> Problem:
    """The problem on the examples with these numbers."""
    parts, start = [], 0
    for batch in problem.batches:
        here = np.sort(examples[(examples >= start) & (examples < start + batch.size)]) - start
        start += batch.size
        if len(here):
            parts.append(batch.taken(torch.from_numpy(here)))
    other = copy.copy(problem)
    # What belongs to the data is computed again.
    other.__dict__.pop("total", None)
    other.__dict__.update(batches=Batches(tuple(parts)), checked=set(problem.checked))
    return other
