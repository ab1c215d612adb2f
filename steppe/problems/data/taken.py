"""How many examples of those there are."""

from steppe import check


def taken(argument: str, asked: int | None, there: int, remedy: str = "Ask for fewer.") -> int:
    """All of them unless told; refused where there are not so many."""
    if asked is None:
        return there
    count = check.integer(argument, asked, minimum=1)
    if count > there:
        check.refuse(argument, f"at most {there:,}", asked, remedy)
    return count
