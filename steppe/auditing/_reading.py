"""What follows from the numbers of an audit, by simple rules, and what does not."""

from steppe.auditing._result import Audit, Check
from steppe.estimate import Estimate

# w is stationary if a gradient step with the best learning rate lowers the loss by less than this share of it, or if
# it moves w by less than that share of its length.
_GAIN, _MOVE = 1e-3, 1e-5
# Negative curvature counts from this share of the sharpness on.
_NEGATIVE = 1e-3
# The edge is met between these ratios.
_EDGE = (0.9, 1.1)


def gain(audit: Audit) -> float | None:
    """‖∇L‖²/(2λ_max), what one gradient step can lower the loss by to second order; None if it is not known."""
    g, top = (audit.estimates.get(name) for name in ("gradient_norm", "sharpness"))
    return None if g is None or top is None or top.value <= 0 else g.value**2 / (2 * top.value)


def state(audit: Audit) -> str:
    """ "diverged", "unknown", "moving" (not stationary), "saddle" or "minimum"."""
    e = audit.estimates
    loss = e.get("loss")
    if loss is None or loss.value != loss.value or abs(loss.value) == float("inf"):
        return "diverged"
    if "gradient_norm" not in e or "sharpness" not in e:
        return "unknown"
    top, g = e["sharpness"], e["gradient_norm"].value
    if g > 0:
        reached = gain(audit)
        length = e["norm_l2"].value if "norm_l2" in e else 0.0
        small = reached is not None and (reached <= _GAIN * abs(loss.value) or g <= _MOVE * top.value * length)
        if not small:
            return "moving"
    least = e.get("smallest_eigenvalue")
    if least is None:
        return "unknown"
    return "saddle" if least.upper < -_NEGATIVE * abs(top.value) else "minimum"


def checks(audit: Audit) -> tuple[Check, ...]:
    """What the numbers decide, in addition to the checks of the products."""
    here, e = state(audit), audit.estimates
    known = {"diverged": "fails", "unknown": "not-run"}.get(here)
    seen = _gain_text(audit)
    result = [
        Check("the loss is finite", "fails" if here == "diverged" else "holds", f"L = {_number(e.get('loss'))}"),
        Check("w is stationary", known or ("fails" if here == "moving" else "holds"), seen),  # type: ignore[arg-type]
        Check(
            "w is a minimum to second order", known or ("holds" if here == "minimum" else "fails"),  # type: ignore[arg-type]
            f"λ_min = {_number(e.get('smallest_eigenvalue'))}",
        ),
    ]  # fmt: skip
    if "edge" in e:
        below = e["edge"].value < _EDGE[1]
        result.append(
            Check("the step size is stable here", "holds" if below else "fails", f"ratio {e['edge'].value:.3g}")
        )
    loose = [name for name, estimate in e.items() if not estimate.converged]
    result.append(
        Check("all intervals have the accuracy asked for", "fails" if loose else "holds", ", ".join(loose) or "all")
    )
    return tuple(result)


def reading(audit: Audit) -> str:
    """One paragraph: is it a minimum, at the edge, how sharp, what rescaling does, what does not follow."""
    if state(audit) == "diverged":
        return (
            f"The loss is {_number(audit.estimates.get('loss'))}: the run has diverged, and no curvature is "
            "defined here. Audit an earlier checkpoint, or train with a smaller learning rate."
        )
    parts = (_trust, _place, _edge, _flat, _rescaled, _split, _robust, _sample)
    return " ".join([*(text for part in parts if (text := part(audit))), _LIMITS])


_LIMITS = (
    "What does not follow: that the network generalises. All numbers are of these examples, and flat networks can "
    "memorise. In wen2023 all flattest two-layer ReLU networks without bias generalise (scenario I); with bias some of "
    "the flattest memorise, and SAM finds them (II); with normalisation some memorise, but SAM finds others (III). "
    "Only data that was not trained on decides: audit the same network on it."
)


def _trust(audit: Audit) -> str:
    failed = [check.name for check in audit.checks if check.name.startswith("products") and check.verdict == "fails"]
    if failed:
        return f"Do not use the curvature: its products failed a check ({', '.join(failed)})."
    if (row := audit.row("products")) is not None and row.estimate is None:
        return (
            f"Second derivatives are not available ({row.note}); only the rows from forward passes and gradients hold."
        )
    return ""


def _place(audit: Audit) -> str:
    e, here = audit.estimates, state(audit)
    if here == "unknown":
        return "Whether this is a minimum is not known: the gradient or the curvature was not measured."
    least, top = e.get("smallest_eigenvalue"), e["sharpness"]
    if here == "moving":
        text = f"This is not a minimum: {_gain_text(audit)}, so the curvature is that of a point on the way."
        if least is not None and least.upper < -_NEGATIVE * abs(top.value):
            text += f" There is negative curvature too (λ_min = {least.value:.3g})."
        return text
    if here == "saddle":
        assert least is not None
        share = abs(least.value / top.value) if top.value else float("inf")
        return (
            f"The gradient is small ({_gain_text(audit)}), but this is a saddle: the smallest eigenvalue is "
            f"{least.value:.3g}, {share:.2g} of the largest in size, so the loss falls on along that direction."
        )
    seen = f"{_gain_text(audit)}, and no negative curvature was found"
    return f"This is a minimum of the loss on these examples, to second order: {seen}."


def _edge(audit: Audit) -> str:
    edge = audit.estimates.get("edge")
    if edge is None:
        return ""
    if edge.value > _EDGE[1]:
        return (
            f"The learning rate is too large for this point: its ratio is {edge.value:.3g}, above 1, so the quadratic "
            "model grows along the sharpest direction and full-batch training would leave."
        )
    if edge.value >= _EDGE[0]:
        return (
            f"Training is at the edge of stability: its ratio is {edge.value:.3g}, so the learning rate sets the "
            "sharpness here, and a smaller one would let it grow."
        )
    return (
        f"The learning rate is stable here: its ratio is {edge.value:.3g}, below 1, so it does not set the sharpness."
    )


def _flat(audit: Audit) -> str:
    top, trace = audit.estimates.get("sharpness"), audit.estimates.get("trace")
    if top is None:
        critical = audit.estimates.get("critical_sharpness")
        return "" if critical is None else f"By forward passes alone the critical sharpness is {critical.value:.3g}."
    text = f"The sharpness is {_interval(top)}"
    if trace is not None:
        text += f" and the trace {_interval(trace)}"
        if 0 < top.value <= trace.value:
            text += f", about {trace.value / top.value:.3g} directions of that sharpness"
    return text + "."


def _rescaled(audit: Audit) -> str:
    least, trace = audit.estimates.get("invariant_trace"), audit.estimates.get("trace_gauss_newton")
    if least is None:
        return (
            "Rescaling can change these two without changing a prediction, and the least of all rescalings is not "
            "known here (its row says why): compare them with networks of the same parameterisation only."
        )
    if trace is None or least.value <= 0:
        return ""
    factor = trace.value / least.value
    if factor < 1.5:
        return f"Rescaling neurons cannot make it much flatter: the least trace of all rescalings is {least.value:.3g}."
    return (
        f"A rescaling of neurons changes no prediction and brings the trace of G from {trace.value:.3g} down to "
        f"{least.value:.3g}, {factor:.3g} times less: the raw sharpness is a matter of scale, so compare networks by "
        "the rescaling-invariant rows."
    )


def _split(audit: Audit) -> str:
    rest, top = audit.estimates.get("norm_residual"), audit.estimates.get("sharpness_gauss_newton")
    if rest is None or top is None or top.value <= 0:
        return ""
    share = rest.value / top.value
    if share < 0.05:
        return "The Hessian is its Gauss-Newton part to within 5%."
    return (
        f"The residual part R is {share:.2g} of the Gauss-Newton part in norm, so the Hessian is not the Fisher matrix."
    )


def _robust(audit: Audit) -> str:
    said = []
    for bits in (8, 4):
        rise, model = (audit.estimates.get(f"rise_{bits}_bits{end}") for end in ("", "_predicted"))
        if rise is None or model is None:
            continue
        close = abs(rise.value - model.value) <= 0.25 * abs(rise.value)
        fit = (
            f"as the curvature predicts ({model.value:.2g})"
            if close
            else f"where the curvature predicts {model.value:.2g}"
        )
        said.append(f"{bits}-bit weights change the loss by {rise.value:.2g}, {fit}")
    return "; ".join(said)[:1].upper() + "; ".join(said)[1:] + "." if said else ""


def _sample(audit: Audit) -> str:
    row, g = audit.row("sharpness"), audit.row("gradient_norm")
    said = []
    if row is not None and row.estimate is not None and row.data is not None and row.data > row.error:
        said.append(
            f"The {audit.examples} examples matter more than the computation: other examples at the same parameters "
            f"would move the sharpness by ± {row.data:.2g}."
        )
    if g is not None and g.estimate is not None and g.data is not None and g.estimate.value < g.data:
        said.append(
            "The gradient is smaller than its sampling error, so these examples cannot tell w from a stationary point "
            "of their source."
        )
    return " ".join(said)


def _gain_text(audit: Audit) -> str:
    g, loss, reached = audit.estimates.get("gradient_norm"), audit.estimates.get("loss"), gain(audit)
    if g is None or loss is None:
        return "no gradient"
    text = f"‖∇L‖ = {g.value:.3g}"
    if reached is None:
        return text
    share = f", {reached / abs(loss.value):.2g} of it" if loss.value else ""
    return f"{text}, and one gradient step can lower the loss {loss.value:.3g} by {reached:.2g}{share}"


def _interval(estimate: Estimate) -> str:
    if estimate.is_exact:
        return f"{estimate.value:.4g}"
    bounds = f"[{estimate.lower:.4g}, {estimate.upper:.4g}]"
    return f"{estimate.value:.4g} (in {bounds} with confidence {estimate.confidence:.2g})"


def _number(estimate: Estimate | None) -> str:
    return "not known" if estimate is None else f"{estimate.value:.4g}"
