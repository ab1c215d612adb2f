"""Products as users compile them: without the flags of conftest.py, in 32 bits."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
CALL = "import sys, products; sys.exit(products.main('CNN (32, 32) True', treatments=products.TREATMENTS[1:2]))"


def test_max_pooling_with_ties_in_chunks():
    """`CNN(batch_norm=True)` with 32 filters and several chunks was wrong by 24%, in code that users compile only."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", CALL]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=TESTS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 1
