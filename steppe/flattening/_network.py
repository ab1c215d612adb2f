"""What `flatten` needs from a network, for every backend: its scale groups, its outputs in float64, its gradients."""

import abc
from collections.abc import Sequence
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.estimate import Estimate
from steppe.flattening._least_sharpness import Jacobian
from steppe.flattening._neurons import AnyLayer, Arrays, Exponents, Layer
from steppe.flattening._scales import Groups
from steppe.training_set import Floats

# Factors for a check are powers of two, which change no digit of a product: what differs is a root or a quotient.
_ULPS = 1e3
_REMEDY = "Pass layers=[steppe.flattening.Neurons(into=..., out=...), ...] for the neurons that can be rescaled."


class Symmetries(NamedTuple):
    """The layers that can be rescaled, and the arrays of neurons in front of an exact normalisation: the function
    depends on their direction only, and larger weights are flatter without end."""

    layers: tuple[Layer, ...]
    unbounded: tuple[str, ...]


class Network(abc.ABC):
    """A problem at w."""

    problem: Any
    w: Any

    @abc.abstractmethod
    def read(self) -> Groups:
        """The scale groups, from the equations of the network."""

    @abc.abstractmethod
    def outputs(self, w: Floats) -> NDArray[Any]:
        """All outputs at w in float64, on some examples and on random inputs like them."""

    @abc.abstractmethod
    def diagonal(self) -> Floats:
        """G_kk of all parameters."""

    @abc.abstractmethod
    def draw(self, rng: np.random.Generator) -> Floats:
        """An unbiased estimate of all G_kk from gradients in random signs: E (Bᵀv)_k² = G_kk for independent v = ±1."""

    @abc.abstractmethod
    def rows(self) -> int:
        """The number of rows of B, where G = BᵀB: examples times outputs."""

    @abc.abstractmethod
    def root(self) -> Floats:
        """B, (rows, parameters)."""

    @abc.abstractmethod
    def jacobian(self, kept: NDArray[np.bool_]) -> Jacobian:
        """Those columns of B, by products."""

    @abc.abstractmethod
    def largest(self, w: Any, rtol: float, start: Floats | None = None) -> Estimate:
        """λ_max(G) at w, from products."""

    @cached_property
    def arrays(self) -> Arrays:
        return Arrays.of(self.problem)

    @cached_property
    def start(self) -> Floats:
        return np.asarray(self.w, dtype=float)

    def vector(self, w: Floats) -> Any:
        """w in the precision of the problem."""
        return self.problem.vector(w.astype(self.w.dtype))

    # Checks by numbers.

    @cached_property
    def _points(self) -> list[tuple[Floats, NDArray[Any]]]:
        """w and a random point near it, with the outputs there. w alone is not enough: a network whose last layer is
        zero would have every symmetry there."""
        moved, rng = self.start.copy(), np.random.default_rng(0)
        for name in self.arrays.shapes:
            own = self.arrays.positions(name)
            size = np.sqrt(np.mean(self.start[own] ** 2)) if moved[own].size else 0.0
            moved[own] += 0.5 * (size or 1.0) * rng.standard_normal(moved[own].shape)
        return [(point, self.outputs(point)) for point in (self.start, moved)]

    def unchanged(self, exponents: Exponents) -> bool:
        """Whether random factors from 1/8 to 8 for these neurons leave the function unchanged, in float64."""
        units = exponents.rows.shape[1]
        powers = np.random.default_rng(1).choice([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], units)
        factors = exponents.factors(np.log(2.0) * powers)
        exact = np.exp2(np.round(np.log2(factors), 6))  # e^{log 8} is not 8
        return all(_equal(self.outputs(point * exact), value) for point, value in self._points)

    def symmetries(self) -> "Symmetries":
        """The layers whose neurons can be rescaled, read off the equations and checked by numbers."""
        groups = self.read()
        layers = self.arrays.layers(groups)
        bounded = [_bounded(layer) for layer in layers]
        kept = tuple(layer for layer in bounded if len(layer))
        shorter = [layer for layer, rest in zip(layers, bounded, strict=True) if len(rest) < len(layer)]
        unbounded = tuple(dict.fromkeys(name for layer in shorter for name in layer.into or layer.out))
        if not kept:
            self._refuse(groups, layers)
        exponents, _ = self.arrays.exponents(kept)
        if not self.unchanged(exponents):
            kept = tuple(layer for layer in kept if self.unchanged(layer.exponents))
            if not kept or not self.unchanged(self.arrays.exponents(kept)[0]):
                self._refuse(groups, layers)
        return Symmetries(kept, unbounded)

    def checked(self, layers: Sequence[AnyLayer]) -> list[AnyLayer]:
        """The layers that the user described, if their neurons can be rescaled."""
        for layer in layers:
            if not isinstance(layer, AnyLayer):
                check.refuse("layers", "a list of steppe.flattening.Neurons", layer, "Describe each group of neurons.")
            if not self.unchanged(self.arrays.exponents([layer])[0]):
                got = f"{layer}, whose rescaling changes the predictions"
                remedy = "Name all their arrays and axes, and the degree."
                check.refuse("layers", "neurons that can be rescaled", got, remedy)
        return list(layers)

    def _refuse(self, groups: Groups, layers: Sequence[Layer]) -> None:
        """Nothing can be rescaled. The error names the first layer."""
        if groups.layers < 2:
            rule = "a stack of at least two dense or convolutional layers"
            check.refuse("params", rule, dict(self.arrays.shapes), _REMEDY)
        inside = np.zeros(self.arrays.size, dtype=bool)
        inside[groups.first] = True
        names = ", ".join(name for name in self.arrays.shapes if inside[self.arrays.positions(name)].any())
        if layers or self._normalised(groups.first):
            got = f"a function of the direction of {names} only: larger weights are flatter, and none are the flattest"
            check.refuse("problem.predict", "without a normalisation behind a layer", got, _REMEDY)
        rule = "positively homogeneous between its layers, as relu is and tanh, softplus or a normalisation are not"
        got = f"a function that changes when the neurons of {names} are rescaled"
        check.refuse("problem.predict", rule, got, _REMEDY)

    def _normalised(self, parameters: Any) -> bool:
        """Whether their size has hardly any effect: a normalisation may add a small constant to a variance."""
        point, value = self._points[1]

        def change(factor: float) -> float:
            scaled = point.copy()
            scaled[parameters] *= factor
            return float(np.max(np.abs(self.outputs(scaled) - value), initial=0.0))

        scale = 0.01 * float(np.max(np.abs(value), initial=0.0))
        return change(0.0) > scale >= max(change(2.0**20), change(2.0**40))


def _bounded(layer: Layer) -> Layer:
    """Without the neurons whose parameters all grow together: in front of an exact normalisation larger weights are
    flatter without end."""
    rows = layer.exponents.rows
    grow, shrink = (np.asarray((sign * rows > 0).sum(axis=0)).ravel() > 0 for sign in (1, -1))
    if (grow & shrink).all():
        return layer
    exponents = Exponents(layer.exponents.of, rows[:, np.flatnonzero(grow & shrink)])
    return Layer(layer.into, layer.out, layer.degree, exponents)


def _equal(f: NDArray[Any], g: NDArray[Any]) -> bool:
    eps = float(np.finfo(f.dtype).eps)
    # A network that computes in float32 whatever it gets: nothing but a root or a quotient may round differently.
    ulps = _ULPS if f.dtype == np.float64 else 16
    return bool(np.max(np.abs(f - g), initial=0.0) <= ulps * eps * np.max(np.abs(g), initial=0.0))


@singledispatch
def network(problem: Any, w: Any = None) -> Network:
    """The network of a problem, by the type of the problem."""
    remedy = "Build steppe.Problem(predict, params, x, y, loss), or steppe.torch.Problem(model, data, loss)."
    check.refuse("problem", "a steppe.Problem", problem, remedy)
