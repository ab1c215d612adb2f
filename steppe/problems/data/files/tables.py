"""California housing as any CSV of its nine columns, with or without a header, written as it was published."""

import csv
import io

from steppe.problems.data.files.errors import DataError


def published(content: bytes, where: str) -> bytes:
    """
    >>> published(b"longitude,...\\n-122.23,37.88,41,880,129,322,126,8.3252,452600\\n", "a.csv")
    b'-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,452600.000000\\n'
    """
    rows = list(csv.reader(io.StringIO(content.decode("utf-8", errors="replace"))))
    body = rows[1:] if rows and not _is_number(rows[0][0] if rows[0] else "") else rows
    try:
        lines = [",".join(f"{float(value):.6f}" for value in row[:9]) for row in body]
    except ValueError as error:
        raise DataError(
            f"{where} is not the published California housing table: {error}. It needs nine numbers a row, longitude "
            "first and median house value last; take cal_housing.data of cal_housing.tgz."
        ) from error
    return ("\n".join(lines) + "\n").encode()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
