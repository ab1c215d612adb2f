"""Other formats in which the files of data sets are published, made into the registered one."""

import csv
import io
import itertools
import pickletools
from typing import Any

from steppe.data._registry import DataError

_PIXELS = 3072  # of an image of CIFAR-10: three colours, 32 × 32
# A batch of 10,000 images has about 50,000 operations.
_MOST_OPERATIONS = 1_000_000
_WHOLE_NUMBERS = {"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1"}


def cifar_records(content: bytes, where: str) -> bytes:
    """CIFAR-10's Python version (a pickle) as its binary version: a label byte and 3,072 pixels for each image.

    The pickle is read as a list of operations and never executed: a pickle can run anything, and 240 bytes can ask for
    6 GB. The pixels are its longest string, the labels are the whole numbers behind the string "labels". The sha256 of
    the result decides whether that was right.
    """
    remedy = "Take the published cifar-10-python.tar.gz, or the binary version."
    pixels, labels, in_labels = b"", bytearray(), False
    value: Any
    try:
        for operation, value, _ in itertools.islice(pickletools.genops(content), _MOST_OPERATIONS):
            if isinstance(value, str | bytes) and operation.name not in ("GLOBAL", "STACK_GLOBAL"):
                # Python 2 wrote bytes as strings, and protocol 2 of Python 3 writes them as Latin-1 text.
                text = value if isinstance(value, bytes) else value.encode("latin-1")
                in_labels = text == b"labels"
                pixels = max(pixels, text, key=len)
            elif in_labels and operation.name in _WHOLE_NUMBERS:
                labels.append(value)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{where} is not a batch of CIFAR-10's Python version: {error}. {remedy}") from error
    if not labels or len(pixels) != _PIXELS * len(labels):
        found = f"{len(labels):,} labels and {len(pixels):,} bytes of pixels"
        raise DataError(f"{where} is not a batch of CIFAR-10's Python version: it has {found}. {remedy}")
    rows = (pixels[k * _PIXELS : (k + 1) * _PIXELS] for k in range(len(labels)))
    return b"".join(part for label, row in zip(labels, rows, strict=True) for part in (bytes([label]), row))


def housing_table(content: bytes, where: str) -> bytes:
    """California housing in its published format, from any CSV of the nine columns, with or without a header.

    >>> housing_table(b"longitude,...\\n-122.23,37.88,41,880,129,322,126,8.3252,452600\\n", "a.csv")
    b'-122.230000,37.880000,41.000000,880.000000,129.000000,322.000000,126.000000,8.325200,452600.000000\\n'
    """
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8", errors="replace"))))
        body = rows[1:] if rows and not _is_number(rows[0][0] if rows[0] else "") else rows
        lines = [",".join(f"{float(value):.6f}" for value in row[:9]) for row in body]
    except (ValueError, csv.Error) as error:
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
