"""The seam between measures and backends: what a kind of problem provides, so that every measure works on it.

Measures call `backend(problem)`, which looks the type of the problem up. A backend is an object of a final subclass of
`Backend`, registered by `backend.register(ProblemType, lambda problem: BACKEND)`; nothing above this room knows which
one it has.
"""

import abc
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steppe import check

if TYPE_CHECKING:
    from steppe.curvature._kinks import Kinks
    from steppe.curvature._operator import Curvature
    from steppe.curvature._statistics import Statistics


class AnyProblem(Protocol):
    """What measures take: a `steppe.Problem` or a `steppe.torch.Problem`."""

    @property
    def w0(self) -> Any: ...

    @property
    def unravel(self) -> Any: ...

    def vector(self, w: Any) -> Any: ...

    def __len__(self) -> int: ...


class Product(Protocol):
    """A symmetric matrix by its products v ↦ Av with numpy vectors; `precision` bounds their relative error, or is None
    if that is the rounding of `dtype`."""

    @property
    def size(self) -> int: ...

    @property
    def dtype(self) -> Any: ...

    @property
    def precision(self) -> float | None: ...

    def __call__(self, v: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Scores:
    """Predictions, and the targets that judge them: class numbers of shape f.shape[:-1], or an array of the shape of f.
    With `signs` each output has to have the sign of its target."""

    f: NDArray[Any]
    y: NDArray[Any]
    signs: bool


class ExactTraces(abc.ABC):
    """The exact traces of a problem at w; each is a number in the precision of the parameters."""

    w: Any
    # Whether the Gauss-Newton part of the trace can be told apart from the rest.
    splits = True

    @abc.abstractmethod
    def closed_form(self) -> tuple[np.floating, np.floating] | None:
        """(tr G, tr R) if the network has a formula for ‖∇f‖² and Δf."""

    @abc.abstractmethod
    def is_cheap(self, passes: int) -> bool:
        """Whether all rows of the Jacobian cost no more than `passes` products."""

    @abc.abstractmethod
    def gauss_newton(self) -> np.floating:
        """(1/n) Σᵢ ⟨ℓ″, J_i J_iᵀ⟩."""

    @abc.abstractmethod
    def rooted(self, root: Any) -> np.floating:
        """‖B‖_F²/n = tr (1/n) BᵀB."""

    @abc.abstractmethod
    def diagonal(self, curvature: "Curvature") -> np.floating:
        """Σ_k eₖᵀ A eₖ, one product for each parameter."""


class Increase(abc.ABC):
    """L(w + scale ⊙ ε) − L(w) as a function of ε; its key determines all random draws."""

    @property
    @abc.abstractmethod
    def is_double(self) -> bool:
        """Whether it is computed in float64."""

    @abc.abstractmethod
    def in_double(self) -> AbstractContextManager["Increase | None"]:
        """A context with the same increase in float64; None if that gains nothing."""

    @abc.abstractmethod
    def pairs(self, number: int) -> NDArray[np.float64]:
        """½[L(w + s ⊙ g) + L(w − s ⊙ g)] − L(w) for the `number`-th batch of 16 standard normal draws g."""

    @abc.abstractmethod
    def rounding(self, number: int | None = None) -> float:
        """A bound on the rounding of such differences, from a few draws: those of a batch, or others."""

    @abc.abstractmethod
    def ascend(self, radius: float, *, steps: int, restarts: int) -> tuple[float, float, int, bool]:
        """The largest increase found over ‖ε‖ ≤ radius, its rounding, the number of gradients, and whether every ascent
        came to rest."""


class Backend(abc.ABC):
    """One kind of problem, for all measures."""

    @abc.abstractmethod
    def vector(self, problem: Any, w: Any = None) -> Any:
        """w as a flat vector, `problem.w0` if it is None. It need not be finite."""

    @abc.abstractmethod
    def reproducible(self, problem: Any, w: Any = None) -> Any:
        """The same for a network that is one function; a network that draws new random numbers is refused."""

    @abc.abstractmethod
    def prepared(self, problem: Any, w: Any = None) -> Any:
        """The same for a measure of curvature: finite, and of at least 32 bits."""

    @abc.abstractmethod
    def scores(self, problem: Any, w: Any) -> Scores:
        """The predictions at w, and their targets."""

    @abc.abstractmethod
    def loss_value(self, problem: Any, w: Any) -> float:
        """L(w)."""

    @abc.abstractmethod
    def gradient(self, problem: Any, w: Any) -> NDArray[Any]:
        """∇L(w)."""

    @abc.abstractmethod
    def groups(self, problem: Any, w: Any, count: int, *, seed: int) -> tuple[Any, ...]:
        """The same problem on `count` disjoint random groups of examples, all of one size; refused if the examples
        cannot be taken apart, for instance since they share batch statistics."""

    @abc.abstractmethod
    def arrays(self, problem: Any) -> Mapping[str, tuple[int, ...]]:
        """The name and the shape of each array of parameters, in the order of the flat vector."""

    @abc.abstractmethod
    def treatment(self, problem: Any, statistics: "Statistics") -> str:
        """How batch statistics are treated, as an estimate says it."""

    @abc.abstractmethod
    def operator(
        self, curvature: "Curvature", problem: Any, w: Any, *, statistics: "Statistics", memory: float
    ) -> Product:
        """The matrix at w."""

    @abc.abstractmethod
    def smaller(
        self, curvature: "Curvature", problem: Any, w: Any, *, statistics: "Statistics", memory: float
    ) -> Product:
        """The matrix or its Gram matrix: for measures of the non-zero eigenvalues."""

    @abc.abstractmethod
    def exact_traces(
        self, curvature: "Curvature", problem: Any, w: Any, *, statistics: "Statistics", memory: float
    ) -> ExactTraces: ...

    @abc.abstractmethod
    def increase(
        self, problem: Any, w: Any, scale: NDArray[Any], *, statistics: "Statistics", memory: float, seed: int
    ) -> Increase: ...

    @abc.abstractmethod
    def kinks(self, problem: Any, w: Any, *, rtol: float, sharpness: float | None) -> "Kinks":
        """The kinks of the network near w, none if the backend cannot find them."""


@singledispatch
def backend(problem: Any) -> Backend:
    """The backend of a problem, by its type."""
    remedy = "Build steppe.Problem(predict, params, x, y, loss), or steppe.torch.Problem(model, data, loss)."
    check.refuse("problem", "a steppe.Problem", problem, remedy)
