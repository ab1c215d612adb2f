"""Products as users compile them: without the flags of conftest.py, in 32 bits."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "products.py"


def test_max_pooling_with_ties_in_chunks():
    """`CNN(batch_norm=True)` with 32 filters and several chunks was wrong by 24%, in code that users compile only."""
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, SCRIPT, "CNN (32, 32) True"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right") == 3
