"""A width that attention can share among its heads."""

from steppe import check


def refuse_uneven(dim: int, heads: int) -> None:
    if dim % heads:
        check.refuse("dim", f"a multiple of the {heads} heads", dim, "Change one of the two.")
