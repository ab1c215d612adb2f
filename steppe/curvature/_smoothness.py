"""Where a loss has kinks: the equations that make them, and the refusal of losses without second derivatives."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NoReturn

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from steppe import check, losses
from steppe.curvature._equations import Equation, bodies, evaluate, traced, unrolled, walk
from steppe.problem import Predict, Problem, Unravel

# Where a function bends without a slope: relu, max, min, abs, clamp, and where(a > b, …).

_COMPARED = frozenset({"max", "min", "gt", "ge", "lt", "le"})
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"})


class Site(eqx.Module):
    """One bend of a function: a layer of pre-activations, one of the inputs of an equation."""

    name: str = eqx.field(static=True)
    operand: int = eqx.field(static=True)  # which input
    margin: Array  # its distance to the bend, signed where it has a sign
    height: Array  # what grows with the pre-activation as fast, and is a constant at the bend


def sites(function: Callable[..., Array], *args: Any) -> list[Site]:
    """All of them, in the order of evaluation.

    >>> (site,) = sites(lambda h: jax.nn.relu(h - 1.0), jnp.array([3.0, 1.0]))
    >>> site.name, site.margin.tolist()
    ('relu', [2.0, 0.0])
    """
    found: list[Site] = []

    def still(site: Site) -> Array:
        found.append(site)
        return jnp.zeros_like(site.height)

    _moved(function, args, still)
    return found


def shifted(function: Callable[..., Array], shifts: Sequence[Array], *args: Any) -> Array:
    """function(*args) with each site's pre-activation moved by its shift."""
    left = iter(shifts)
    return _moved(function, args, lambda site: next(left))


def _moved(function: Callable[..., Array], args: Sequence[Any], shift: Callable[[Site], Array]) -> Array:
    # By the question asked: jax.nn.elu asks h > 0 twice, and is one site. Kept, so that no other object gets its id.
    asked: dict[tuple[object, ...], list[Any]] = {}

    def move(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        if _question(equation, inputs) not in asked:
            for site in list(_sites(equation, inputs)):
                inputs[site.operand] = inputs[site.operand] + shift(site)
                asked[_question(equation, inputs)] = list(inputs)
        return evaluate(equation, inputs)

    def enter(equation: Equation, inputs: list[Any]) -> Sequence[Any]:
        return unrolled(equation, inputs, enter) if equation.primitive.name == "scan" else move(equation, inputs)

    (result,) = walk(traced(function, *args), jax.tree.leaves(args), enter)
    moved: Array = result
    return moved


def _question(equation: Equation, inputs: list[Any]) -> tuple[object, ...]:
    return equation.primitive.name, *(float(a) if _is_number(a) else id(a) for a in inputs)


def _is_number(a: Any) -> bool:
    """A known number: no tracer, and no key of random numbers."""
    return not isinstance(a, jax.core.Tracer) and jnp.ndim(a) == 0 and jnp.issubdtype(jnp.result_type(a), jnp.number)


def tolerance(size: float, dtype: Any) -> float:
    """The distance from a kink that rounding can make: a pre-activation is a sum, off by up to 16 ulp of its terms
    (steppe.linalg._operator), and `size` stands for the size of those. Zero counts as one: any step crosses."""
    return 16.0 * float(np.finfo(dtype).eps) * (size or 1.0)


def _sites(equation: Equation, inputs: list[Any]) -> Iterator[Site]:
    name = equation.primitive.name
    if name in _COMPARED and _is_layer(inputs[0] - inputs[1] if _real(inputs[0]) else None):
        margin = inputs[0] - inputs[1]
        yield Site(name, 0, margin, margin) if _is_layer(inputs[0]) else Site(name, 1, margin, -margin)
    elif name == "abs" and _is_layer(inputs[0]):
        yield Site(name, 0, inputs[0], inputs[0])
    elif name == "clamp" and _is_layer(inputs[1]):
        low, x, high = inputs
        yield Site(name, 1, jnp.minimum(jnp.abs(x - low), jnp.abs(x - high)), x)
    elif name in _CUSTOM:
        # Its own derivative counts, not that of the equations inside: look there, and move its input.
        yield from _inside(equation, inputs)


def _inside(equation: Equation, inputs: list[Any]) -> Iterator[Site]:
    layers = [k for k, a in enumerate(inputs) if _is_layer(a)]
    (body,) = bodies(equation)[:1] or (None,)
    if body is None or len(layers) != 1:
        return
    found: list[Array] = []

    def look(inner: Equation, values: list[Any]) -> Sequence[Any]:
        found.extend(site.margin for site in _sites(inner, values))
        return evaluate(inner, values)

    walk(body, inputs, look)
    height = inputs[layers[0]]
    alike = [jnp.abs(m) if len(found) > 1 else m for m in found if m.shape == jnp.shape(height)]
    if alike:
        name = next((str(e.params["name"]) for e in body.jaxpr.eqns if "name" in e.params), "custom")
        yield Site(name, layers[0], reduce(jnp.minimum, alike), height)


def _real(a: ArrayLike) -> bool:
    return jnp.issubdtype(jnp.result_type(a), jnp.floating)


def _is_layer(a: Any) -> bool:
    return a is not None and _real(a) and jnp.ndim(a) > 0


# A loss without second derivative where the predictions are has no curvature there.

_SMOOTH = (losses.mse, losses.half_mse, losses.cross_entropy)
# The share of Σ|ℓ″| that may be in doubt: the relative precision that `sharpness` works to.
_SHARE = 1e-3
_TIMES = (-4, -1, 0, 1, 4)
_SIGNS = np.sign(_TIMES)[:, None]


def refuse_kinked_loss(problem: Problem, w: Array) -> None:
    """Refuses a loss without second derivative at the predictions, |f − y| at an interpolator for example.

    The losses of steppe.losses are smooth; those of users are looked at along a direction d that no structure knows,
    φᵢ(t) = ℓ(fᵢ + t d, yᵢ). One whose φᵢ or its derivatives are not finite is refused; so is one with a φᵢ′ that
    jumps, for any example, and one with φᵢ″ that jump, or that autodiff gets wrong at t = 0, for more than 1e-3 of
    the sum of all |φᵢ″|: less is below the precision of the measures. A jump is what stays when the step across,
    some 10² ulp of the predictions, is made four times longer; a smooth change grows with it.
    """
    loss = problem.loss_function
    if loss in _SMOOTH or (loss.name == "logistic" and loss == losses.logistic(smoothing=loss.smoothing)):
        return
    f = _predictions(problem.predict, problem.unravel, problem.x, w)
    seen = np.asarray(f)
    if not np.isfinite(seen).all():
        return  # the parameters are to blame, and the measure says so
    step = 8 * tolerance(float(np.abs(seen).max()), f.dtype)
    times = jnp.asarray(step * np.array(_TIMES, f.dtype))
    slopes, bends = (np.asarray(a, dtype=float) for a in _along(loss, f, problem.y, times))
    finite = np.isfinite(slopes) & np.isfinite(bends)
    if not finite.all():
        _refuse(loss, "whose derivatives are not finite", ~finite.all(axis=0))
    half = float(np.finfo(f.dtype).eps) ** 0.5
    if (kinked := _jumps(slopes, half * np.abs(slopes).max(axis=0))).any():
        _refuse(loss, "whose slope jumps", kinked)
    size = np.abs(bends).max(axis=0)
    # Where the slope is constant its rounding errors are left, an ulp of it over a step.
    floor = np.maximum(half * size, half**2 * np.abs(slopes).max(axis=0) / step)
    if size[jumping := _jumps(bends, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative jumps", jumping)
    # Where two equal terms meet in a maximum, autodiff takes half of each: wrong for max(r, 0)² + min(r, 0)² at 0.
    if size[wrong := ~jumping & _jumps(np.abs(bends - bends[2]) * _SIGNS, floor)].sum() > _SHARE * size.sum():
        _refuse(loss, "whose second derivative autodiff gets wrong", wrong)


def _jumps(values: NDArray[Any], floor: NDArray[Any]) -> NDArray[Any]:
    """Where values at −4, −1, 0, 1, 4 steps jump at 0: by more than the floor, at one step as at four."""
    furthest, below, _, above, last = values
    change = np.abs(above - below)
    jumps: NDArray[Any] = (change > floor) & (change > 0.5 * np.abs(last - furthest))
    return jumps


def _refuse(loss: losses.Loss, trouble: str, where: NDArray[Any]) -> NoReturn:
    check.refuse(
        "loss",
        "twice differentiable at the predictions",
        f"{loss.name!r}, {trouble} at {int(where.sum())} of them",
        "Measure at other parameters, or smooth the loss where it bends.",
    )


# Compiled once for all losses of a network, and once for all networks with a loss.
@eqx.filter_jit
def _predictions(predict: Predict, unravel: Unravel, x: Any, w: Array) -> Array:
    return predict(unravel(w), x)


@eqx.filter_jit
def _along(loss: losses.Loss, f: Array, y: Array, times: Array) -> tuple[Array, Array]:
    """φᵢ′(t) and φᵢ″(t), (times, examples)."""
    # Of both signs and of all sizes from ½ to 1½: no two outputs move alike, and none stays.
    angles = 1.0 + jnp.arange(f.size, dtype=f.dtype).reshape(f.shape)
    direction = jnp.sign(jnp.cos(angles)) + jnp.sin(jnp.sqrt(2.0) * angles) / 2

    def values(t: Array) -> Array:
        return jax.vmap(loss.example)(f + t * direction, y)

    def slopes(t: Array) -> Array:
        return jax.jvp(values, (t,), (jnp.ones_like(t),))[1]

    # Not vmap: it would hold all of them at once.
    return jax.lax.map(lambda t: jax.jvp(slopes, (t,), (jnp.ones_like(t),)), times)
