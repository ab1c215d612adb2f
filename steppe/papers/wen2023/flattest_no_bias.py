"""The flattest two-layer nets without bias: an exact convex program over all neurons, by column generation.

For unit directions w the least trace of an interpolator is the minimum of Σ q(w)|a_w| over Σ a_w relu(w·xᵢ) = yᵢ,
with q = 2√(AB), A = (2/n) Σ relu(w·xᵢ)², B = (2/n) Σ 1[w·xᵢ > 0] ‖xᵢ‖² (multi-index, Eq. 3). Its dual has one number
λᵢ for each example and one constraint for each w, |Σ λᵢ relu(w·xᵢ)| ≤ q(w). Where the same examples are active, B is a
constant and w is in a convex cone: the worst w solves a small non-negative least-squares problem. All sets of examples
that a neuron can fire on are listed, so the price of the best neuron is exact.

At a kink, w·xᵢ = 0, the loss is not twice differentiable. With `kinks` such neurons are allowed and count as silent at
xᵢ, as autodiff has it. Without, they are only limits of neurons that do or do not fire there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.training_set import Floats, examples

Flags = NDArray[np.bool_]

# Rounds of column generation, the columns that a round adds, and the relative gap at which it ends.
_ROUNDS, _ADDED, _GAP = 60, 40, 1e-6
# Weight of the equations in a least-squares problem: they hold up to its square root of rounding.
_STIFF = 1e4
# A price within this of 1 is that of a neuron that a flattest net may use.
_TIGHT = 1e-5
# Entries of w that the training set does not limit stay below this.
_LARGE = 10.0


def active_sets(x: Any, *, kinks: bool) -> Flags:
    """Every set {i : w·xᵢ > 0}, w ∈ R^d, one in each row; without `kinks` only of w with no w·xᵢ = 0.

    >>> square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    >>> len(active_sets(square, kinks=False)), len(active_sets(square, kinks=True))     # kinks: one, or two adjacent
    (4, 8)
    """
    points = np.asarray(x, float)
    found = [active for active in _branches(points, kinks) if any(active)]
    return np.unique(np.array(found), axis=0)


def _branches(points: Floats, kinks: bool) -> Iterator[list[bool]]:
    """Depth first: each example in turn is active or not, as long as a linear program finds a w."""
    from scipy.optimize import linprog

    margin = 0.0 if kinks else 1.0
    stack: list[tuple[list[bool], Floats]] = [([], np.zeros(points.shape[1]))]
    while stack:
        signs, w = stack.pop()
        k = len(signs)
        if k == len(points):
            yield signs
            continue
        for active in (True, False):
            chosen = [*signs, active]
            value = float(points[k] @ w)
            if value >= 1 if active else value <= -margin:
                stack.append((chosen, w))
                continue
            inside = np.array(chosen)
            side = np.where(inside, -1.0, 1.0)[:, None] * points[: k + 1]
            limits = np.where(inside, -1.0, -margin)
            solved = linprog(np.zeros(len(w)), A_ub=side, b_ub=limits, bounds=(None, None), method="highs")
            if solved.status == 0:
                stack.append((chosen, solved.x))


class Priced(NamedTuple):
    """The largest |Σ λᵢ relu(w·xᵢ)|/q(w) of a set of active examples, and a unit w that attains it."""

    price: float
    w: Floats


class Neuron(NamedTuple):
    """A direction w, the sign of its outgoing weight, and the examples that it fires on."""

    w: Floats
    sign: float
    active: Flags


@dataclass(frozen=True, eq=False)
class Flattest:
    """A net (W₁, W₂) of the least `trace`; no net has less than `lower`. All flattest nets are made of `neurons`, each
    with any w of the same outputs on the training set (x, y)."""

    W1: Floats
    W2: Floats
    trace: float
    lower: float
    neurons: tuple[Neuron, ...]
    x: Floats
    y: Floats

    @property
    def attained(self) -> bool:
        """Whether a flattest net has no neuron at a kink, w·xᵢ = 0, where the loss is not twice differentiable."""
        clear = [neuron for neuron in self.neurons if self._clear(neuron)]
        return bool(clear) and self._least(clear, [0.0] * len(clear)) is not None

    def worst(self, point: Any, label: float) -> float:
        """The least label · f(point) over all flattest nets."""
        v = np.asarray(point, float)
        # Each neuron may be turned in both ways.
        values = [label * n.sign * max(end, 0.0) for n in self.neurons for end in self._ends(n, v)]
        least = self._least([n for n in self.neurons for _ in range(2)], values)
        assert least is not None
        return least

    def _least(self, neurons: Sequence[Neuron], values: Sequence[float]) -> float | None:
        """The least Σ aⱼ valueⱼ over a ≥ 0 that interpolate with the least trace; None if these neurons cannot."""
        from scipy.optimize import linprog

        heights = [self._heights(neuron) for neuron in neurons]
        q = [_cost(h, float(np.sum(self.x[n.active] ** 2)), len(h)) for h, n in zip(heights, neurons, strict=True)]
        phi = np.array([n.sign * h for h, n in zip(heights, neurons, strict=True)]).T
        # Without presolve, which takes nearly equal columns for a contradiction.
        solved = linprog(
            values, A_eq=phi, b_eq=self.y, A_ub=[q], b_ub=[self.trace * (1 + _TIGHT)], method="highs-ds",
            options={"presolve": False},
        )  # fmt: skip
        return float(solved.fun) if solved.status == 0 else None

    def _heights(self, neuron: Neuron) -> Floats:
        return np.where(neuron.active, np.maximum(self.x @ neuron.w, 0), 0)

    def _clear(self, neuron: Neuron) -> bool:
        """Whether some w with the outputs of this neuron is negative on all examples on which it does not fire."""
        from scipy.optimize import linprog

        heights, active = self._heights(neuron), neuron.active
        if heights[active].min() < _TIGHT * heights.max():
            return False
        d, others = self.x.shape[1], self.x[~active]
        room = linprog(
            [*np.zeros(d), -1.0], A_eq=np.pad(self.x[active], ((0, 0), (0, 1))), b_eq=heights[active],
            A_ub=np.pad(others, ((0, 0), (0, 1)), constant_values=1.0), b_ub=np.full(len(others), 1e-9),
            bounds=[(-_LARGE, _LARGE)] * d + [(0, 1)], method="highs",
        )  # fmt: skip
        return room.status == 0 and -room.fun > _TIGHT

    def _ends(self, neuron: Neuron, point: Floats) -> tuple[float, float]:
        """The least and the largest w·point over all w with the outputs of this neuron."""
        from scipy.optimize import linprog

        heights, active = self._heights(neuron), neuron.active
        rounding = np.full((~active).sum(), 1e-9)
        least, most = (
            linprog(sign * point, A_eq=self.x[active], b_eq=heights[active], A_ub=self.x[~active], b_ub=rounding,
                    bounds=(-_LARGE, _LARGE), method="highs").fun
            for sign in (1.0, -1.0)
        )  # fmt: skip
        return float(least), -float(most)


def flattest_no_bias(x: Any, y: Any, *, kinks: bool) -> Flattest:
    """The least trace over nets of any width that interpolate, to a relative gap of 1e-6; for d up to about 5.

    Without `kinks` it may be an infimum: its neurons are then at the edge of the sets of w that fire on the same
    examples, with the cost that they have inside.

    >>> found = flattest_no_bias([[3.0, 4.0]], [2.0], kinks=True)                      # 4 ‖x‖ |y|
    >>> round(found.trace, 6), found.attained
    (40.0, True)
    """
    x, y = examples(x, y)
    if x.shape[1] > 6:
        check.refuse("x", "of at most 6 coordinates", x.shape, "The active sets are listed, and their number explodes.")
    sets = active_sets(x, kinks=kinks)
    cones = [_Cone(x, active) for active in sets]
    columns = _first_columns(x, sets)
    for _ in range(_ROUNDS):
        W, owner = np.array([w for w, _ in columns]), np.array([k for _, k in columns])
        # A neuron on the boundary of a cone costs what those inside cost.
        phi = np.where(sets[owner].T, np.maximum(x @ W.T, 0), 0.0)
        q = np.array([_cost(h, cones[k].squares, len(x)) for h, k in zip(phi.T, owner, strict=True)])
        a, multiplier = _master(phi, y, q)
        priced = [(cone.price(s * multiplier), k, s) for k, cone in enumerate(cones) for s in (1.0, -1.0)]
        most = max(p.price for p, *_ in priced)
        trace, lower = float(q @ np.abs(a)), float(y @ multiplier) / max(most, 1.0)
        if trace - lower <= _GAP * trace:
            break
        best = sorted(priced, key=lambda entry: -entry[0].price)[:_ADDED]
        columns += [(p.w, k) for p, k, _ in best if p.price > 1]
    used = np.flatnonzero(np.abs(a) > 1e-9 * np.abs(a).max())
    made_of = [Neuron(W[j], float(np.sign(a[j])), sets[owner[j]]) for j in used]
    made_of += [Neuron(p.w, s, sets[k]) for p, k, s in priced if p.price > 1 - _TIGHT]
    return Flattest(W[used], a[used], trace, lower, tuple(made_of), x, y)


def _cost(heights: Floats, squares: float, n: int) -> float:
    """q = 2√(AB) of a neuron with these outputs; `squares` is Σ ‖xᵢ‖² over the examples that it fires on."""
    return float(4 / n * np.sqrt(np.sum(heights**2) * squares))


def _first_columns(x: Floats, sets: Flags) -> list[tuple[Floats, int]]:
    """Random neurons with the number of their active set: so many that they put out whatever labels can be put out."""
    number = {active.tobytes(): k for k, active in enumerate(sets)}
    w = np.random.default_rng(0).normal(size=(10 * len(x) + 10 * len(sets), x.shape[1]))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return [(v, number[fires.tobytes()]) for v, fires in zip(w, w @ x.T > 0, strict=True) if fires.any()]


def _master(phi: Floats, y: Floats, q: Floats) -> tuple[Floats, Floats]:
    """min Σ q|a| over Φa = y, and its multiplier: a linear program."""
    from scipy.optimize import linprog

    solved = linprog(np.concatenate([q, q]), A_eq=np.hstack([phi, -phi]), b_eq=y, method="highs")
    if solved.status != 0:
        remedy = "Without bias f is even plus linear: remove examples that contradict it."
        check.refuse("y", "labels that some net without bias puts out", y[:8].tolist(), remedy)
    m = phi.shape[1]
    return solved.x[:m] - solved.x[m:], np.asarray(solved.eqlin.marginals)


class _Cone:
    """All w with w·xᵢ ≥ 0 on the active examples and ≤ 0 on the others."""

    def __init__(self, x: Floats, active: Flags):
        n = len(x)
        self.x, self.active, self.squares = x, active, float(np.sum(x[active] ** 2))
        # Coordinates in which (2/n) Σ (w·xᵢ)² over the active examples is ‖·‖², and those that it does not see.
        _, values, axes = np.linalg.svd(x[active], full_matrices=True)
        rank = int(np.sum(values > 1e-10 * values[0]))
        self.seen = axes[:rank] / (np.sqrt(2 / n) * values[:rank])[:, None]
        self.unseen = axes[rank:]
        walls = np.where(active, -1.0, 1.0)[:, None] * x
        self.matrix = np.vstack([self.seen @ walls.T, _STIFF * self.unseen @ walls.T])

    def price(self, multiplier: Floats) -> Priced:
        """The largest Σ λᵢ w·xᵢ over q(w): the distance of λ from the multipliers of the walls of the cone."""
        from scipy.optimize import nnls

        goal = np.concatenate(
            [self.seen @ (self.x[self.active].T @ multiplier[self.active]), np.zeros(len(self.unseen))]
        )
        rest = goal - self.matrix @ nnls(self.matrix, goal)[0]
        top = len(self.seen)
        w = rest[:top] @ self.seen + _STIFF * rest[top:] @ self.unseen
        length = float(np.linalg.norm(w))
        if length < 1e-12:
            return Priced(0.0, np.zeros_like(w))
        return Priced(float(np.linalg.norm(rest)) / (2 * np.sqrt(2 / len(self.x) * self.squares)), w / length)
