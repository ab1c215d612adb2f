"""Links of a multi-index model, y = g(Ux): sums of homogeneous functions of the indices, and what is not."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.problems.data.hypercube import Floats
from steppe.problems.networks.homogeneous import Homogeneous, linear, quadratic


class Term(NamedTuple):
    """Σⱼ coefficientsⱼ σ(directionsⱼ · z)."""

    activation: Homogeneous
    directions: Floats
    coefficients: Floats


class Link(abc.ABC):
    """g of the indices z = Ux, (n, r) → (n,), r = `indices`."""

    @property
    @abc.abstractmethod
    def indices(self) -> int:
        """r."""

    @abc.abstractmethod
    def __call__(self, z: Any) -> Floats: ...


class Expansion(Link):
    """A link that is a sum of homogeneous functions, whose moments are known in closed form."""

    @abc.abstractmethod
    def terms(self) -> list[Term]: ...

    def __call__(self, z: Any) -> Floats:
        z = np.asarray(z, dtype=float)
        total: Floats = sum(
            (term.activation(z @ term.directions.T) @ term.coefficients for term in self.terms()), np.zeros(len(z))
        )
        return total


@dataclass(frozen=True)
class SumOfSingleIndex(Expansion):
    """g(z) = Σⱼ cⱼ σ(zⱼ); one coefficient makes the single-index model.

    >>> SumOfSingleIndex(quadratic, (1.0, -2.0))([[3.0, 1.0]]).tolist()
    [7.0]
    """

    activation: Homogeneous
    coefficients: tuple[float, ...] = (1.0,)

    @property
    def indices(self) -> int:
        return len(self.coefficients)

    def terms(self) -> list[Term]:
        return [Term(self.activation, np.eye(self.indices), np.array(self.coefficients))]


@dataclass(frozen=True)
class Polynomial(Expansion):
    """g(z) = Σⱼ p(σ(zⱼ)) with p(s) = c₁ s + c₂ s² + …, over `indices` coordinates.

    >>> Polynomial(linear, (1.0, 10.0), 2)([[1.0, 2.0]]).tolist()   # 1 + 2 + 10 (1 + 4)
    [53.0]
    """

    activation: Homogeneous
    coefficients: tuple[float, ...]
    indices: int = 1

    def terms(self) -> list[Term]:
        return [
            Term(self.activation.power(k), np.eye(self.indices), np.full(self.indices, c))
            for k, c in enumerate(self.coefficients, start=1)
        ]


@dataclass(frozen=True)
class Linear(Expansion):
    """g(z) = Σⱼ cⱼ zⱼ."""

    coefficients: tuple[float, ...] = (1.0,)

    @property
    def indices(self) -> int:
        return len(self.coefficients)

    def terms(self) -> list[Term]:
        return [Term(linear, np.eye(self.indices), np.array(self.coefficients))]


@dataclass(frozen=True)
class QuadraticForm(Expansion):
    """g(z) = zᵀAz, A symmetric, as rows.

    >>> QuadraticForm(((0.0, 1.0), (1.0, 0.0)))([[3.0, 2.0]]).round(12).tolist()
    [12.0]
    """

    matrix: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        A = np.asarray(self.matrix, dtype=float)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.array_equal(A, A.T):
            check.refuse("matrix", "symmetric", A.shape, "Pass (A + Aᵀ)/2, as rows.")

    @property
    def indices(self) -> int:
        return len(self.matrix)

    def terms(self) -> list[Term]:
        values, vectors = np.linalg.eigh(np.asarray(self.matrix, dtype=float))
        return [Term(quadratic, vectors.T, values)]


@dataclass(frozen=True)
class Composed(Link):
    """g(z) = outer(inner(z)), the model g(xᵀAx) of Nichani et al. 2023; no moments in closed form.

    >>> Composed(np.tanh, QuadraticForm(((1.0,),)))([[0.0]]).tolist()
    [0.0]
    """

    outer: Callable[[Floats], Floats]
    inner: Link

    @property
    def indices(self) -> int:
        return self.inner.indices

    def __call__(self, z: Any) -> Floats:
        return self.outer(self.inner(z))
