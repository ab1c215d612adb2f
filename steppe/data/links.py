"""Links g of multi-index models y = g(Ux): sums of homogeneous functions of the indices, and compositions."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.activations import Homogeneous, linear, quadratic
from steppe.data._dataset import Floats

__all__ = [
    "Composed",
    "Expansion",
    "Linear",
    "Link",
    "Polynomial",
    "QuadraticForm",
    "Shifted",
    "SumOfSingleIndex",
    "Term",
]


def __dir__() -> list[str]:
    return list(__all__)


class Term(NamedTuple):
    """Σⱼ coefficientsⱼ σ(directionsⱼ · z)."""

    activation: Homogeneous
    directions: Floats
    coefficients: Floats


class Link(abc.ABC):
    """g(z), a function of the indices z = Ux, (n, r) → (n,), with r = `indices`."""

    @property
    @abc.abstractmethod
    def indices(self) -> int:
        """r, the number of directions that y depends on."""

    @abc.abstractmethod
    def __call__(self, z: Any) -> Floats: ...


class Expansion(Link):
    """A sum of homogeneous functions, whose moments are known in closed form."""

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
    """g(z) = Σⱼ cⱼ σ(zⱼ); with one coefficient, a single-index model.

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
    """g(z) = zᵀAz with the rows of a symmetric A.

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
    """g(z) = outer(inner(z)), as the model g(xᵀAx) of Nichani et al. 2023; its moments have no closed form.

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


@dataclass(frozen=True)
class Shifted(Link):
    """g(z) = inner(z) + constant.

    >>> Shifted(Linear((2.0,)), 1.0)([[3.0]]).tolist()
    [7.0]
    """

    inner: Expansion
    constant: float

    @property
    def indices(self) -> int:
        return self.inner.indices

    def __call__(self, z: Any) -> Floats:
        return self.inner(z) + self.constant
