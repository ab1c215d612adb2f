"""A network with its batch statistics held fixed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array

from steppe.measures.equations import evaluate, flat, shaped, traced, walk
from steppe.problems.problem import Predict


@dataclass(frozen=True)
class FrozenPredict:
    """predict with every batch statistic a constant: same predictions, no derivative through the statistics.

    A statistic is what an equation makes of values with an example axis when its result has none: a mean, a sum,
    a largest value over the examples. It is found by comparing the shapes for n and for n + 1 examples, since
    an axis whose length changes is one of examples.
    """

    predict: Predict

    def __call__(self, params: Any, x: Any) -> Array:
        closed = traced(self.predict, params, x)
        frozen = set(statistics(self.predict, params, x))
        place = iter(range(len(list(flat(closed)))))

        def step(equation: Any, inputs: list[Any]) -> Any:
            outputs = evaluate(equation, inputs)
            return [jax.lax.stop_gradient(a) for a in outputs] if next(place) in frozen else outputs

        (prediction,) = walk(closed, jax.tree.leaves((params, x)), step)
        return prediction


def statistics(predict: Predict, params: Any, x: Any) -> Iterator[int]:
    """The places, in the order of `flat`, of the equations that sum examples up."""

    def shape(a: Any, more: int) -> jax.ShapeDtypeStruct:
        return shaped((a.shape[0] + more, *a.shape[1:]), a.dtype)

    params = jax.eval_shape(lambda: params)
    small, large = (
        flat(traced(predict, params, jax.tree.map(lambda a, more=more: shape(a, more), x))) for more in (0, 1)
    )
    for place, (a, b) in enumerate(zip(small, large, strict=True)):
        entering = any(s.aval.shape != t.aval.shape for s, t in zip(a.invars, b.invars, strict=True))
        leaving = any(s.aval.shape != t.aval.shape for s, t in zip(a.outvars, b.outvars, strict=True))
        if entering and not leaving:
            yield place
