"""The hidden layers of a plain stack of dense or convolutional layers, read off its parameters and checked."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

from steppe import check
from steppe.measures.flattening.neurons import Arrays, Neurons
from steppe.measures.flattening.symmetry import Function

_REMEDY = "Pass layers=[steppe.flattening.Neurons(into=..., out=...), ...] for the neurons that can be rescaled."
_DEGREES = (1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Stage:
    """One layer: its weights, and the vectors that belong to it."""

    weight: str
    vectors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.weight, *self.vectors)

    def __str__(self) -> str:
        return ", ".join(self.names)


def hidden_layers(function: Function) -> list[Neurons]:
    """The hidden layers between the layers of the network, first to last; refused with the layer that is none."""
    candidates = list(_stacks(function.arrays))
    for stages in candidates[:1]:
        for stage in stages:
            if function.normalised(stage.names):
                _refuse_normalised(stage)
    failed: tuple[Stage, Stage] | None = None
    for stages, rows, interleaved in product(candidates, (True, False), (False, True)):
        found = _chain(function.arrays, stages, rows=rows, interleaved=interleaved)
        if found and _ends_in(function.arrays, stages[-1], rows=rows, outputs=function.outputs):
            checked = [_with_degree(function, layer) for layer in found]
            if None not in checked and function.unchanged(layers := [a for a in checked if a is not None]):
                return layers
            failed = failed or next(
                (pair for pair, a in zip(pairwise(stages), checked, strict=True) if a is None), None
            )
    if failed is not None:
        rule = "positively homogeneous between its layers, as relu is and tanh, softplus or a normalisation are not"
        check.refuse("problem.predict", rule, f"a function that changes when the neurons of {failed[0]} do", _REMEDY)
    shapes = dict(function.arrays.shapes)
    return check.refuse("params", "a stack of at least two dense or convolutional layers", shapes, _REMEDY)


def _refuse_normalised(stage: Stage) -> None:
    check.refuse(
        "problem.predict",
        "without a normalisation behind a layer",
        f"a function of the direction of {stage} only: the larger they are, the flatter, and there is no flattest",
        _REMEDY,
    )


def _with_degree(function: Function, layer: Neurons) -> Neurons | None:
    """The layer with the degree of its activation, None where it has none."""
    tried = (replace(layer, degree=degree) for degree in _DEGREES)
    return next((layer for layer in tried if function.unchanged([layer])), None)


def _stacks(arrays: Arrays) -> Iterator[list[Stage]]:
    """Ways to read the arrays as layers in order: a lone vector is a bias of the layer before it, and the last one
    may be the weights of a single output."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name in sorted(arrays.shapes, key=_natural):
        groups.setdefault(_natural(_home(name)), []).append(name)
    ordered = [groups[key] for key in sorted(groups)]
    for last_is_weight in (False, True):
        stages: list[Stage] = []
        early: list[str] = []
        for number, members in enumerate(ordered):
            names = sorted(members, key=lambda name: -len(arrays.shapes[name]))
            dimensions, last = len(arrays.shapes[names[0]]), number == len(ordered) - 1
            lone = dimensions == 1 and _home(names[0]) == names[0] and not (last and last_is_weight)
            if dimensions == 0 or (lone and not stages):
                early += names
            elif lone:
                stages[-1] = replace(stages[-1], vectors=(*stages[-1].vectors, *names))
            else:
                stages.append(Stage(names[0], (*names[1:], *early)))
                early = []
        if len(stages) > 1:
            yield stages


def _chain(arrays: Arrays, stages: Sequence[Stage], *, rows: bool, interleaved: bool) -> list[Neurons] | None:
    """The hidden layers if weights are (out, in, …), or with rows=False (…, in, out); None where sizes do not fit."""
    layers = []
    for before, after in pairwise(stages):
        if len(arrays.shapes[before.weight]) < 2:
            return None
        outgoing, incoming = (0, 1) if rows else (-1, -2)
        incoming = incoming if len(arrays.shapes[after.weight]) > 1 else 0
        m = arrays.width(before.weight, outgoing)
        vectors = {name: 0 for name in before.vectors if arrays.shapes[name] == (m,)}
        if arrays.width(after.weight, incoming) % m:
            return None
        into = {before.weight: outgoing, **vectors}
        layers.append(Neurons(into, {after.weight: incoming}, interleaved=interleaved))
    return layers


def _ends_in(arrays: Arrays, stage: Stage, *, rows: bool, outputs: int) -> bool:
    """Whether the last layer has the outputs of the network, and nothing is left over behind it."""
    width = arrays.width(stage.weight, 0 if rows else -1) if len(arrays.shapes[stage.weight]) > 1 else 1
    return outputs % width == 0


def _home(name: str) -> str:
    """What the arrays of one layer share: the folder "0" of "0.W", the number 1 of "W1"; else the name itself."""
    folder, dot, own = name.rpartition(".")
    number = re.search(r"\d+$", own)
    return folder if dot else number.group() if number and not own.isdigit() else name


def _natural(name: str) -> tuple[object, ...]:
    """W2 before W10."""
    pieces = re.split(r"(\d+)", name)
    return tuple((0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in pieces if piece)
