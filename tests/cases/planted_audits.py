"""Audits with planted numbers: what the reading, the page and the comparison are tested on."""

from steppe.auditing import Audit, Row
from steppe.auditing._reading import checks
from steppe.estimate import Estimate

# An exact minimum below the edge, balanced, of half_mse.
MINIMUM = {
    "loss": 0.01, "gradient_norm": 1e-9, "sharpness": 10.0, "smallest_eigenvalue": 0.0, "trace": 30.0,
    "trace_gauss_newton": 30.0, "sharpness_gauss_newton": 10.0, "norm_residual": 0.01, "norm_l2": 5.0,
    "critical_sharpness": 10.0, "invariant_trace": 29.0, "invariant_sharpness": 9.0, "rise_8_bits": 1e-4,
    "rise_8_bits_predicted": 1.1e-4,
}  # fmt: skip


def planted(title="planted", *, width=0.0, data=None, notes=None, **numbers):
    """MINIMUM with other numbers; None leaves one out. `width` is the relative half width of all intervals."""
    values = {name: v for name, v in (MINIMUM | numbers).items() if v is not None}
    rows = [
        Row(
            name,
            name,
            Estimate(v, v - width * abs(v), v + width * abs(v), 0.99, 1),
            "solver" if width else "exact",
            data,
        )
        for name, v in values.items()
    ]
    rows += [Row(name, name, None, note=why) for name, why in (notes or {}).items()]
    found = Audit(title, 100, 50, tuple(rows), (), (), 1.0)
    return Audit(title, 100, 50, tuple(rows), (), checks(found), 1.0)
