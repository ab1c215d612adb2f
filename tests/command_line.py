"""Commands called in this process, without the seconds that another one needs to import JAX."""

import contextlib
import io
from types import SimpleNamespace

from steppe.cli import main

# Changes that make the runs of a figure of wen2023 tiny.
TINY = ("--set", "epochs=30", "--set", "width=20", "--set", "test=100")


def call(*arguments):
    """What `steppe` prints and returns."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main([str(a) for a in arguments])
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
