"""`audit`: one part after the other, each with its interval, its cost and the error of the data sample."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from steppe import check, linalg, measures
from steppe._random import Key, generator
from steppe.auditing._edge import Edge, check_optimizer, edge_of
from steppe.auditing._reading import checks
from steppe.auditing._result import Audit, Block, Check, Origin, Row
from steppe.auditing._steps import rounded
from steppe.curvature import Product, backend, gauss_newton, hessian, residual
from steppe.estimate import Accuracy, Estimate
from steppe.linalg._probes import multiplier
from steppe.measures._critical_step import critical_step
from steppe.problem import Problem

Floats = NDArray[np.float64]
Rows = Iterator[Row]

# Intervals of a per cent, for at most so many products a part.
AUDIT = Accuracy(0.01, max_matvecs=500)
# Products that a part may take however little time is left: a trace needs 22 for its interval.
_LEAST = 24
# Groups of examples whose spread is the error of the sample, and the fewest that have one.
_GROUPS, _FEWEST = 16, 4
# Probes of the spread of the trace over the groups.
_PROBES = 8
# The sharpness of more blocks than this is not measured, since each takes a Lanczos run.
_BLOCKS = 32
# Entries of the Jacobian up to which the least sharpness over all rescalings is computed.
_JACOBIAN = 1e8
# The least trace needs a gradient for each output of each example.
_OUTPUTS = 64
# Multiplications of singular value decompositions, a minute or so of one core.
_SVD = 2e11
# The bits to which weights are rounded, and the size of a random step relative to the weights.
_BITS, _SIGMA = (8, 4), 0.01
_NO_PRODUCTS = "the second derivative is not available: "


def audit(
    model: Any,
    data: Any = None,
    loss: Any = None,
    w: Any = None,
    *,
    optimizer: Any = None,
    accuracy: Accuracy = AUDIT,
    seconds: float | None = None,
    memory: float = 2**30,
    key: Key = 0,
    title: str = "",
    progress: Callable[[str], None] | None = None,
) -> Audit:
    """All that steppe measures on a network, at `w` (by default its own parameters), as an `Audit`.

    `model` is a `steppe.Problem`, a `steppe.torch.Problem`, or a torch module with its data and loss. `optimizer` gives
    the edge of stability: `steppe.dynamics.GD(lr)`, `HeavyBall(lr, momentum)`, a torch SGD or Adam, or
    `steppe.auditing.Adam(lr, nu)`. `accuracy` holds for eigenvalues; traces and averages get five times its rtol. When
    `seconds` are over, no further part begins; `progress` hears the name of each part.

    >>> import jax.numpy as jnp, steppe
    >>> p = steppe.Problem(lambda w, x: w[0] * w[1] * x, jnp.ones(2), jnp.ones(1), jnp.ones(1), steppe.losses.half_mse)
    >>> found = steppe.audit(p)                                     # L = ½(w₁w₂ − 1)² at its minimum (1, 1)
    >>> round(found.estimates["sharpness"].value, 6), found.estimates["trace"].value
    (2.0, 2.0)
    """
    problem = problem_of(model, data, loss)
    Accuracy.expected(accuracy)
    if seconds is not None:
        seconds = check.number("seconds", seconds, above=0.0, remedy="Pass None for no limit.")
    check_optimizer(optimizer)
    parameters = None if problem is model else dict(model.named_parameters())
    work = Work(problem, w, optimizer, parameters, accuracy, seconds, memory, int(generator(key).integers(2**31)))
    rows: list[Row] = []
    for part in PARTS:
        if progress is not None:
            progress(part.label)
        rows += work.carried_out(part)
    found = Audit(
        title or str(problem),
        work.w.size,
        len(problem),
        tuple(rows),
        tuple(work.blocks),
        tuple(work.checks),
        time.monotonic() - work.started,
        work.convention,
        work.curves,
    )
    return replace(found, checks=(*found.checks, *checks(found)))


def problem_of(model: Any, data: Any, loss: Any) -> Any:
    """The problem of an audit's first three arguments."""
    if _is_torch(model):
        if data is None or loss is None:
            check.refuse("data and loss", "given with a torch module", (data, loss), "audit(model, data, loss).")
        from steppe.torch import Problem  # an extra: only those who bring a module need torch

        return Problem(model, data, loss)
    if data is not None or loss is not None:
        check.refuse("data and loss", "None for a problem, which has both", (data, loss), "Call audit(problem).")
    backend(model)  # refuses what is no problem
    return model


def _is_torch(model: Any) -> bool:
    """Whether it is a torch module: asked without importing torch."""
    return any(base.__module__.partition(".")[0] == "torch" for base in type(model).__mro__)


@dataclass(frozen=True)
class Part:
    """A part of the audit: it yields rows, and if it raises, the error is a row of this name."""

    name: str
    label: str
    run: Callable[["Work"], Rows]
    curved: bool = True  # whether it needs finite parameters and a finite loss


class Work:
    """What the parts share: the problem, what they have found so far, and the budget."""

    def __init__(
        self,
        problem: Any,
        w: Any,
        optimizer: Any,
        parameters: Mapping[str, Any] | None,
        accuracy: Accuracy,
        seconds: float | None,
        memory: float,
        key: int,
    ):
        self.started = time.monotonic()
        self.problem, self.here = problem, backend(problem)
        self.w: Floats = np.asarray(self.here.vector(problem, w))
        self.accuracy, self.seconds, self.memory, self.key = accuracy, seconds, memory, key
        self.optimizer, self.parameters, self.convention = optimizer, parameters, ""
        self.found: dict[str, Estimate] = {}
        self.blocks: list[Block] = []
        self.checks: list[Check] = []
        self.curves: dict[str, Any] = {}
        self.top: Floats | None = None  # the leading eigenvector
        self.product_seconds = 0.0

    # What is measured once.

    @cached_property
    def loss(self) -> float:
        return self.at(self.w)

    def at(self, w: Floats) -> float:
        """L(w); infinite rather than a warning where it overflows."""
        with np.errstate(all="ignore"):
            return float(self.here.loss_value(self.problem, self.here.vector(self.problem, self.typed(w))))

    def typed(self, w: Floats) -> Any:
        """w in the precision of the problem."""
        return np.asarray(w, np.asarray(self.problem.w0).dtype)

    @cached_property
    def gradient(self) -> Floats:
        w = self.here.prepared(self.problem, self.typed(self.w))
        return np.asarray(self.here.gradient(self.problem, w), dtype=float)

    @cached_property
    def hessian(self) -> Product:
        return hessian(self.problem, self.typed(self.w), memory=self.memory)

    @cached_property
    def groups(self) -> tuple[Any, ...]:
        """Random groups of examples; raises if they cannot be taken apart."""
        count = min(_GROUPS, len(self.problem))
        if count < _FEWEST:
            remedy = "The error of the sample takes more."
            check.refuse("data", f"at least {_FEWEST} examples", len(self.problem), remedy)
        return self.here.groups(self.problem, self.typed(self.w), count, seed=self.key)

    @cached_property
    def group_hessians(self) -> list[Product]:
        share = self.memory / len(self.groups)
        return [hessian(group, self.typed(self.w), memory=share) for group in self.groups]

    @cached_property
    def places(self) -> dict[str, slice]:
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.here.arrays(self.problem).values())]).tolist()
        names = self.here.arrays(self.problem)
        return {name: slice(a, b) for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.w).all()) and math.isfinite(self.loss)

    # Accuracy within the budget.

    @property
    def left(self) -> float:
        return math.inf if self.seconds is None else self.seconds - (time.monotonic() - self.started)

    def limited(self, factor: float = 1.0, *, share: float = 0.2, most: int | None = None) -> Accuracy:
        """`factor` times the rtol of the audit, with as many products as `share` of the remaining seconds allows."""
        products = self.accuracy.max_matvecs if most is None else min(most, self.accuracy.max_matvecs)
        if math.isfinite(self.left) and self.product_seconds > 0:
            products = min(products, max(_LEAST, int(share * max(self.left, 0.0) / self.product_seconds)))
        return Accuracy(factor * self.accuracy.rtol, self.accuracy.confidence, products)

    def spread(self, values: Any) -> float:
        """Half of the interval of a mean over groups, from their spread: Student's t."""
        values = np.asarray(values, dtype=float)
        t = -float(stdtrit(len(values) - 1, 0.5 * self.accuracy.delta))
        return t * float(values.std(ddof=1)) / len(values) ** 0.5

    def sampled(self, values: Callable[[], Any]) -> tuple[float | None, str]:
        """The error of the sample, or None and why."""
        try:
            return self.spread(values()), ""
        except Exception as error:  # the number stands without it
            return None, f"no error of the sample: {reason(error)}"

    def learn(self, row: Row) -> None:
        """How long a product takes, with all that belongs to it, from a row of several products."""
        if row.estimate is not None and row.unit == "products" and row.estimate.matvecs >= 2:
            self.product_seconds = max(self.product_seconds, row.seconds / row.estimate.matvecs)

    def judge(self, name: str, value: float, most: float) -> None:
        """A check that a relative error is at most `most`."""
        seen = f"relative error {value:.1g}, allowed {most:.1g}"
        self.checks.append(Check(name, "holds" if value <= most else "fails", seen))

    # Parts.

    def carried_out(self, part: Part) -> list[Row]:
        """The rows of a part; what it raises is a row too."""
        rows: list[Row] = []
        began = time.monotonic()
        why = ""
        if self.left <= 0:
            why = f"not started: the budget of {self.seconds:g} s was over"
        elif part.curved and not self.finite:
            why = "not measured: the parameters or the loss are not finite"
        if not why:
            try:
                with warnings.catch_warnings():
                    # Kinks are a part of their own.
                    warnings.simplefilter("ignore", measures.KinkWarning)
                    for row in part.run(self):
                        if row.estimate is not None:
                            self.found[row.name] = row.estimate
                        now = time.monotonic()
                        rows.append(replace(row, seconds=now - began))
                        self.learn(rows[-1])
                        began = now
            except Exception as error:  # the other parts go on
                why = reason(error)
        if why:
            rows.append(Row(part.name, part.label, None, seconds=time.monotonic() - began, note=why))
        return rows


def reason(error: Exception) -> str:
    """An error as one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, check.ArgumentError) else f"{type(error).__name__}: "
    return kind + (text if len(text) <= 300 else text[:297] + "...")


# Is this a minimum?


def _loss(work: Work) -> Rows:
    value = work.loss
    data, note = work.sampled(
        lambda: [work.here.loss_value(g, work.here.vector(g, work.typed(work.w))) for g in work.groups]
    )
    finite = math.isfinite(value)
    estimate = replace(Estimate.exact(value, matvecs=1), converged=finite)
    yield Row(
        "loss", "loss L", estimate, data=data if finite else None, unit="losses", note=note if finite else "diverged"
    )


def _gradient(work: Work) -> Rows:
    g = work.gradient
    size = float(np.linalg.norm(g))
    data, note = None, ""
    try:
        data = _gradient_spread(work)
        note = "± is the length of its sampling error"
    except Exception as error:
        note = f"no error of the sample: {reason(error)}"
    yield Row(
        "gradient_norm", "gradient norm ‖∇L‖", Estimate.exact(size, matvecs=1), data=data, unit="gradients", note=note
    )


def _gradient_spread(work: Work) -> float:
    """The length of the error of the mean gradient, √(Σ ‖g_b − ḡ‖²/(B(B − 1))): two vectors are held, not B."""
    w, count = work.typed(work.w), len(work.groups)
    mean, squares = np.zeros(work.w.size), 0.0
    for k, group in enumerate(work.groups, start=1):
        g = np.asarray(work.here.gradient(group, work.here.vector(group, w)), dtype=float)
        away = g - mean
        mean += away / k
        squares += float(away @ (g - mean))  # Welford
    return (squares / (count * (count - 1))) ** 0.5


def _products(work: Work) -> Rows:
    """Whether the products are symmetric and linear, for three of them."""
    rng, p = np.random.default_rng(work.key), work.w.size
    H, eps = work.hessian, float(np.finfo(work.hessian.dtype).eps)
    u, v = (x / np.linalg.norm(x) for x in rng.standard_normal((2, p)))
    Hu = np.asarray(H(u), dtype=float)
    began = time.monotonic()
    Hv = np.asarray(H(v), dtype=float)
    work.product_seconds = time.monotonic() - began
    size = float(np.linalg.norm(Hu) + np.linalg.norm(Hv)) or 1.0
    gap = abs(float(u @ Hv - v @ Hu)) / size
    linear = float(np.linalg.norm(np.asarray(H(u + 2 * v), dtype=float) - Hu - 2 * Hv)) / size
    work.judge("products are symmetric", gap, eps**0.5)
    work.judge("products are linear", linear, eps**0.5)
    yield from ()


def _difference(work: Work, u: Floats, Hu: Floats, step: float) -> float:
    """‖(∇L(w + hu) − ∇L(w − hu))/2h − Hu‖, where h is `step` relative to ‖w‖."""
    h = step * max(float(np.linalg.norm(work.w)), 1e-3)
    up, down = (
        np.asarray(work.here.gradient(work.problem, work.here.vector(work.problem, work.typed(w))), dtype=float)
        for w in (work.w + h * u, work.w - h * u)
    )
    return float(np.linalg.norm((up - down) / (2 * h) - Hu))


def _sharpness(work: Work) -> Rows:
    p = work.w.size
    with linalg.one_thread():
        pair = linalg.largest(work.hessian, p, accuracy=work.limited(), precision=work.hessian.precision, key=work.key)
    work.top = v = np.asarray(pair.vector, dtype=float)
    # Along this direction the curvature is large beside rounding and beside what a step across kinks adds. The bound is
    # loose all the same: a wrong product is off by its own size.
    step, Hv = float(np.finfo(work.hessian.dtype).eps) ** (1 / 3), np.asarray(work.hessian(v), dtype=float)
    away = min(_difference(work, v, Hv, share * step) for share in (1.0, 0.1, 0.01))
    work.judge("products are differences of gradients", away / (float(np.linalg.norm(Hv)) or 1.0), 0.2)
    # To first order λ_max of other examples is vᵀHv with the same v.
    data, note = work.sampled(lambda: [float(v @ np.asarray(H(v), dtype=float)) for H in work.group_hessians])
    yield Row("sharpness", "sharpness λ_max(∇²L)", pair.estimate, "solver", data, note=note)
    top = pair.estimate.upper

    def turned(u: Floats) -> Floats:
        return top * u - np.asarray(work.hessian(u), dtype=float)

    # Relative to the sharpness: relative to a λ_min near zero the work would not end.
    with linalg.one_thread():
        least = linalg.largest(
            turned, p, accuracy=work.limited(0.5), precision=_rounding(work), key=work.key + 1
        ).estimate
    bounds = top - least.upper, top - least.lower
    yield Row(
        "smallest_eigenvalue",
        "smallest eigenvalue λ_min",
        replace(least, value=top - least.value, lower=bounds[0], upper=bounds[1]),
        "solver",
    )


def _rounding(work: Work) -> float:
    stated = work.hessian.precision
    return 16.0 * float(np.finfo(work.hessian.dtype).eps) if stated is None else stated


def _trace(work: Work) -> Rows:
    found = measures.trace(
        work.problem, work.typed(work.w), accuracy=work.limited(5), memory=work.memory, key=work.key + 2
    )

    def spread() -> list[float]:
        rng = np.random.default_rng(work.key)
        p = work.w.size
        z = np.eye(p) if p <= _PROBES else np.stack([linalg.rademacher(p, rng) for _ in range(_PROBES)])
        share = 1.0 if p <= _PROBES else 1.0 / _PROBES
        return [share * sum(float(u @ np.asarray(H(u), dtype=float)) for u in z) for H in work.group_hessians]

    data, note = work.sampled(spread)
    work.__dict__.pop("group_hessians", None)  # the last part that needs them
    yield Row("trace", "trace tr ∇²L", found, _probed(found), data, note=note)
    for name, label in (("gauss_newton", "trace of G (Gauss-Newton)"), ("residual", "trace of R = ∇²L − G")):
        if name in found.parts:
            part = found.parts[name]
            yield Row(f"trace_{name}", label, part, _probed(part))


def _probed(estimate: Estimate) -> Origin:
    return "exact" if estimate.is_exact else "probes"


def _split(work: Work) -> Rows:
    w = work.typed(work.w)
    found = measures.sharpness(
        work.problem, w, curvature=gauss_newton, accuracy=work.limited(), memory=work.memory, key=work.key + 3
    )
    yield Row("sharpness_gauss_newton", "λ_max of G", found, "solver")
    rest = measures.spectral_norm(
        work.problem, w, curvature=residual, accuracy=work.limited(5, most=200), memory=work.memory, key=work.key + 4
    )
    yield Row("norm_residual", "norm of R", rest, "solver", note="how far ∇²L is from G (Weyl)")


# Steps.


def _critical(work: Work) -> Rows:
    g = work.gradient
    size, length = float(np.linalg.norm(g)), float(np.linalg.norm(work.w))
    if size == 0.0:
        check.refuse("the gradient", "not zero", 0.0, "At a stationary point no step along it says anything.")

    def rise(step: float) -> float:
        return work.at(work.w - step * g) - work.loss

    eps = float(np.finfo(np.asarray(work.problem.w0).dtype).eps)
    found = critical_step(
        rise, 1e-4 * (length or 1.0) / size, rtol=work.accuracy.rtol, rounding=16 * eps * abs(work.loss)
    )
    middle = 2 / found.estimate.value
    note = f"no learning rate up to {found.below:.3g} raises the loss along −∇L"
    yield Row("critical_sharpness", "critical sharpness 2/η*", found.estimate, "search", unit="losses", note=note)
    steps = np.linspace(0.0, 1.5 * middle, 31)
    bend = float(g @ np.asarray(work.hessian(g), dtype=float))
    work.curves["along"] = {
        "steps": steps.tolist(),
        "rise": [rise(s) if s else 0.0 for s in steps.tolist()],
        "predicted": (-steps * size**2 + 0.5 * steps**2 * bend).tolist(),
        "critical": middle,
    }


def _edge(work: Work) -> Rows:
    if work.optimizer is None:
        why = "no optimiser was given: pass optimizer=steppe.dynamics.GD(lr), or --lr on the command line"
        yield Row("edge", "edge of stability", None, note=why)
        return
    names = work.here.arrays(work.problem)
    parameters = None if work.parameters is None else {name: work.parameters[name] for name in names}
    edge = edge_of(work.optimizer, lambda v: work.here.vector(work.problem, v), parameters)
    preconditioned = edge.scales is not None
    top = _preconditioned(work, edge) if preconditioned else work.found.get("sharpness")
    if top is None:
        yield Row("edge", "edge of stability", None, note="the sharpness was not measured")
        return
    limit = edge.limit(float(np.linalg.norm(work.gradient)))
    work.convention, work.curves["lr"] = f"{edge.text}; here {limit:.4g}", edge.lr
    decay = 0.0 if preconditioned else float(edge.decay)
    bounds = {name: (getattr(top, name) + decay) / limit for name in ("value", "lower", "upper")}
    estimate = replace(top, **bounds, matvecs=top.matvecs if preconditioned else 0)
    yield Row("edge", "λ over its edge, 1 is the edge", estimate, "solver", note=work.convention)


def _preconditioned(work: Work, edge: Edge) -> Estimate:
    """λ_max(S(∇²L + decay)S)."""
    scales, decay = np.asarray(edge.scales), np.asarray(edge.decay)

    def product(v: Floats) -> Floats:
        u = scales * v
        return scales * (np.asarray(work.hessian(u), dtype=float) + decay * u)

    # S multiplies the rounding of a product by at most the square of its condition.
    precision = _rounding(work) * float(scales.max() / scales[scales > 0].min()) ** 2
    with linalg.one_thread():
        return linalg.largest(
            product, work.w.size, accuracy=work.limited(), precision=precision, key=work.key + 5
        ).estimate


def _blocks(work: Work) -> Rows:
    """The table per array and per module, and the diagonal of H that it comes from."""
    p, accuracy = work.w.size, work.limited(10, most=400)
    with linalg.one_thread():
        diagonal = linalg.diagonal(
            work.hessian,
            p,
            rtol=accuracy.rtol,
            max_matvecs=accuracy.max_matvecs,
            precision=work.hessian.precision,
            key=work.key + 6,
        )
    blocks = []
    for name, arrays in _modules(work.places).items():
        index = np.concatenate([np.arange(work.places[a].start, work.places[a].stop) for a in arrays])
        norm = float(np.linalg.norm(work.w[index]))
        blocks.append(
            (Block(name, len(arrays), index.size, norm, _block_trace(diagonal, index, accuracy), None), index)
        )
    size = sorted((-abs(block.trace.value) for block, _ in blocks if block.trace is not None))
    least = -size[min(_BLOCKS, len(size)) - 1]
    for block, index in blocks:
        chosen = block.trace is not None and abs(block.trace.value) >= least and work.left > 0
        work.blocks.append(replace(block, sharpness=_block_sharpness(work, index)) if chosen else block)
    if len(blocks) > _BLOCKS:
        why = f"measured for the {_BLOCKS} of {len(blocks)} blocks with the largest trace"
        yield Row("blocks_sharpness", "sharpness of the other blocks", None, note=why)


def _modules(places: Mapping[str, slice]) -> dict[str, list[str]]:
    """Each array, and before its first array each module of several arrays that is not the whole network.

    >>> list(_modules({"a.W": slice(0), "a.b": slice(0), "c": slice(0)}))
    ['a', 'a.W', 'a.b', 'c']
    """
    groups: dict[str, list[str]] = {}
    for name in places:
        parts = name.split(".")
        for depth in range(1, len(parts)):
            module = ".".join(parts[:depth])
            groups.setdefault(module, []).append(name)
        groups.setdefault(name, []).append(name)
    seen, kept = set(), {}
    for name, arrays in groups.items():
        # A module of one module, and the whole network, are no blocks of their own.
        alone = name in places or (1 < len(arrays) < len(places) and tuple(arrays) not in seen)
        if alone:
            kept[name] = arrays
            seen.add(tuple(arrays))
    return kept


def _block_trace(diagonal: linalg.Diagonal, index: Any, accuracy: Accuracy) -> Estimate:
    """The sum of entries of the diagonal, whose products serve all blocks.

    Two entries of one block share the noise of the entry between them, so that the variance of the sum is at most twice
    the sum of the variances.
    """
    value, error = float(diagonal.value[index].sum()), float(np.linalg.norm(diagonal.stderr[index]))
    if error == 0.0:
        return Estimate.exact(value, matvecs=diagonal.matvecs)
    half = multiplier(diagonal.matvecs, accuracy.delta) * 2**0.5 * error
    return Estimate(value, value - half, value + half, accuracy.confidence, diagonal.matvecs)


def _block_sharpness(work: Work, index: Any) -> Estimate:
    def product(v: Floats) -> Floats:
        whole = np.zeros(work.w.size)
        whole[index] = v
        return np.asarray(work.hessian(whole), dtype=float)[index]

    with linalg.one_thread():
        accuracy = work.limited(5, share=0.5 / _BLOCKS, most=100)
        return linalg.largest(
            product, index.size, accuracy=accuracy, precision=_rounding(work), key=work.key + 7
        ).estimate


def _rounded(work: Work) -> Rows:
    """The loss with rounded weights, beside its second-order model and the model of random rounding."""
    traces = {block.name: block.trace for block in work.blocks}
    shown = []
    for bits in _BITS:
        w, steps = rounded(work.w, work.places, bits)
        move = w - work.w
        rise = work.at(w) - work.loss
        # An error uniform on a step of size s has variance s²/12: half of the trace term of each array.
        known = [0.5 * t.value * steps[name] ** 2 / 12 for name in work.places if (t := traces.get(name)) is not None]
        random = sum(known) if len(known) == len(work.places) else math.nan
        note = f"L = {work.loss + rise:.4g}; half of the trace terms: {random:.3g}"
        yield Row(
            f"rise_{bits}_bits", f"rise of L at {bits} bits", Estimate.exact(rise, matvecs=1), unit="losses", note=note
        )
        bent = float(work.gradient @ move + 0.5 * move @ np.asarray(work.hessian(move), dtype=float))
        label = f"… by the quadratic form, {bits} bits"
        yield Row(f"rise_{bits}_bits_predicted", label, Estimate.exact(bent, matvecs=1))
        shown.append((f"{bits} bits", rise, bent))
    work.curves["robustness"] = shown


def _random(work: Work) -> Rows:
    sigma = _SIGMA * float(np.linalg.norm(work.w)) / work.w.size**0.5
    found = measures.random_direction_sharpness(
        work.problem, work.typed(work.w), sigma=sigma, accuracy=_losses(work), memory=work.memory, key=work.key + 8
    )
    note = f"σ = {sigma:.3g}, {_SIGMA:.0%} of the root mean square of w"
    yield Row("rise_random", "mean rise of L, random step", found, "probes", unit="losses", note=note)
    if (trace := work.found.get("trace")) is None:
        return
    half = 0.5 * sigma**2
    values = {name: half * getattr(trace, name) for name in ("value", "lower", "upper")}
    predicted = replace(trace, **values, matvecs=0, parts={})
    yield Row("rise_random_predicted", "… by half of the trace", predicted, _probed(trace))
    work.curves.setdefault("robustness", []).append((f"random, {_SIGMA:.0%}", found.value, predicted.value))


def _losses(work: Work) -> Accuracy:
    """A sampled increase: a tenth, and a loss is a fifth of a product."""
    limited = work.limited(10, share=0.1)
    return Accuracy(limited.rtol, limited.confidence, max(128, 4 * limited.max_matvecs))


# Measures that rescaling does not change, and the rest.


def _adaptive(work: Work) -> Rows:
    w, radius = work.typed(work.w), 0.1
    found = measures.adaptive_sharpness(
        work.problem, w, radius=radius, accuracy=_losses(work), memory=work.memory, key=work.key + 9
    )
    yield Row("adaptive_sharpness", f"adaptive sharpness, ρ = {radius}", found, "probes", unit="losses")
    worst = measures.worst_adaptive_sharpness(
        work.problem, w, radius=radius, steps=60, restarts=1, memory=work.memory, key=work.key + 10
    )
    note = "attained; nothing bounds it from above"
    yield Row("worst_adaptive_sharpness", f"… at worst, ρ = {radius}", worst, "search", unit="gradients", note=note)


def _invariant(work: Work) -> Rows:
    w = work.typed(work.w)
    each = _outputs(work.problem, w)
    if each > _OUTPUTS:
        note = f"it takes {each:,} gradients an example: call steppe.flatten(problem, w, draws=32)"
        yield Row("invariant_trace", "least tr G over rescalings", None, note=note)
        yield Row("invariant_sharpness", "least λ_max(G) over rescalings", None, note="as above")
        return
    try:
        trace = measures.invariant_trace(work.problem, w)
    except Exception as error:
        why = reason(error)
        yield Row("invariant_trace", "least tr G over rescalings", None, note=why)
        yield Row("invariant_sharpness", "least λ_max(G) over rescalings", None, note="as above")
        return
    note = "certified: no rescaling of neurons has less than the lower end"
    yield Row("invariant_trace", "least tr G over rescalings", trace, "solver", note=note)
    entries = work.w.size * len(work.problem)
    if entries > _JACOBIAN:
        note = 'too large for an audit: call steppe.flatten(problem, w, measure="sharpness")'
        yield Row("invariant_sharpness", "least λ_max(G) over rescalings", None, note=note)
        return
    sharpness = measures.invariant_sharpness(work.problem, w, rtol=max(1e-4, 0.1 * work.accuracy.rtol))
    yield Row("invariant_sharpness", "least λ_max(G) over rescalings", sharpness, "solver", note=note)


def _outputs(problem: Any, w: Any) -> int:
    """The outputs of one example of a JAX problem."""
    if not isinstance(problem, Problem):
        return 0
    import jax

    return int(jax.eval_shape(problem.predictions, w).size) // len(problem)


def _fisher(work: Work) -> Rows:
    w = work.typed(work.w)
    for empirical, label in ((False, "trace of the Fisher matrix"), (True, "… empirical: mean of ‖∇ℓᵢ‖²")):
        found = measures.fisher_trace(
            work.problem, w, empirical=empirical, accuracy=work.limited(5), memory=work.memory, key=work.key + 11
        )
        name = "empirical_fisher_trace" if empirical else "fisher_trace"
        yield Row(name, label, found, _probed(found))


def _norms(work: Work) -> Rows:
    w = work.typed(work.w)
    yield Row("norm_l2", "norm ‖w‖₂", measures.norm(work.problem, w, order=2))
    yield Row("norm_l1", "norm ‖w‖₁", measures.norm(work.problem, w, order=1))
    shapes = [
        (shape[0], int(np.prod(shape[1:]))) for shape in work.here.arrays(work.problem).values() if len(shape) > 1
    ]
    if sum(m * n * min(m, n) for m, n in shapes) > _SVD:
        why = "too large for an audit: call steppe.measures.norm(problem, w, order='nuclear')"
        yield Row("norm_nuclear", "sum of nuclear norms", None, note=why)
    elif work.finite:
        yield Row("norm_nuclear", "sum of nuclear norms", measures.norm(work.problem, w, order="nuclear"))


def _kinks(work: Work) -> Rows:
    if not isinstance(work.problem, Problem):
        why = "kinks are read off the equations of JAX networks; in a torch module they are not searched"
        yield Row("kinks", "kinks that matter", None, note=why)
        return
    top = work.found.get("sharpness")
    found = measures.kinks(work.problem, work.typed(work.w), sharpness=None if top is None else top.value)
    note = f"{len(found)} within rounding, {found.matter} of them change ∇²L"
    yield Row("kinks", "kinks that matter", Estimate.exact(found.matter), unit="", note=note)


def _density(work: Work) -> Rows:
    probes, most = 4, work.limited().max_matvecs
    steps = min(48, work.w.size, max(8, most // probes))
    found = measures.density(
        work.problem, work.typed(work.w), probes=probes, steps=steps, memory=work.memory, key=work.key + 12
    )
    work.curves["density"] = {name: getattr(found, name).tolist() for name in ("grid", "density", "stderr")}
    work.curves["density"] |= {"probes": probes, "matvecs": found.matvecs}
    yield from ()


# What needs few products comes first: the budget may end before the rest.
PARTS = (
    Part("loss", "loss", _loss, curved=False),
    Part("gradient_norm", "gradient norm", _gradient),
    Part("norms", "norms", _norms, curved=False),
    Part("products", "products with the Hessian", _products),
    Part("sharpness", "sharpness", _sharpness),
    Part("edge", "edge of stability", _edge),
    Part("critical_sharpness", "critical sharpness 2/η*", _critical),
    Part("trace", "trace", _trace),
    Part("split", "∇²L = G + R", _split),
    Part("blocks", "blocks of the Hessian", _blocks),
    Part("rise_bits", "rounded weights", _rounded),
    Part("invariant_trace", "flattest rescaling", _invariant),
    Part("rise_random", "random steps", _random),
    Part("adaptive_sharpness", "adaptive sharpness", _adaptive),
    Part("fisher_trace", "Fisher matrix", _fisher),
    Part("kinks", "kinks", _kinks),
    Part("density", "density of eigenvalues", _density),
)
