"""Multi-index models: y = g(Ux) + noise with Gaussian x, and the links g."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from steppe import check
from steppe.activations import Homogeneous, linear, quadratic
from steppe.data._cube import Floats, Split

# Links of a multi-index model, y = g(Ux): sums of homogeneous functions of the indices, and what is not.


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


# Multi-index models: x ~ N(0, I_d), y = g(Ux) + noise, U orthonormal (r, d).


def orthonormal(r: int, d: int, *, key: int | np.random.Generator = 0) -> Floats:
    """U (r, d) with U Uᵀ = I, uniform among these.

    >>> U = orthonormal(2, 5)
    >>> bool(np.allclose(U @ U.T, np.eye(2)))
    True
    """
    d = check.integer("d", d, minimum=1)
    r = check.integer("r", r, minimum=1)
    if r > d:
        check.refuse("r", f"at most d = {d}", r, "There are no more orthonormal rows than coordinates.")
    Q, R = np.linalg.qr(np.random.default_rng(key).standard_normal((d, r)))
    # Signs of the diagonal make the distribution uniform.
    rows: Floats = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T
    return rows


def multi_index(
    link: Link, U: Any, n: int, *, noise: float = 0.0, test: int = 0, key: int | np.random.Generator = 0
) -> Split:
    """n examples with label noise of standard deviation `noise`, and `test` fresh ones without.

    >>> from steppe.data._multi_index import Linear
    >>> x, y, _, _ = multi_index(Linear((2.0,)), [[0.0, 1.0]], 3)
    >>> bool((y == 2 * x[:, 1]).all())
    True
    """
    rows = indices(link, U)
    n, test = check.integer("n", n, minimum=1), check.integer("test", test, minimum=0)
    noise = check.number("noise", noise, minimum=0.0)
    rng = np.random.default_rng(key)
    x, x_test = rng.standard_normal((n, rows.shape[1])), rng.standard_normal((test, rows.shape[1]))
    y = link(x @ rows.T) + noise * rng.standard_normal(n)
    return Split(x, y, x_test, link(x_test @ rows.T))


def indices(link: Link, U: Any) -> Floats:
    """U as float64 with orthonormal rows, one for each index of the link; refused where it is not."""
    shape = np.shape(U)
    if len(shape) != 2 or shape[0] != link.indices:
        check.refuse("U", f"of shape ({link.indices}, d), one row an index", shape, "Use orthonormal(r, d).")
    return orthonormal_rows(U)


def orthonormal_rows(U: Any) -> Floats:
    """U (r, d) as float64; refused where its rows are not orthonormal."""
    rows = np.asarray(U, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape:
        check.refuse("U", "of shape (r, d), one row a direction", rows.shape, "Use orthonormal(r, d).")
    if np.max(np.abs(rows @ rows.T - np.eye(len(rows)))) > 1e-10:
        check.refuse("U", "orthonormal, U Uᵀ = I", rows @ rows.T, "Use orthonormal(r, d), or np.linalg.qr.")
    return rows
