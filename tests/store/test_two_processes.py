"""Two processes and one run: one computes, the other reads. A killed run continues to the same bytes."""

import random
import subprocess
import sys
import time

from cases.toy_specs import Count

from steppe.papers.wen2023.training import Row, Training
from steppe.store import Store, address

SLOW = Count(20, pause=0.05)
SCRIPT = """
import sys
sys.path.insert(0, "tests")
from cases.toy_specs import Count
from steppe.store import Store
spec = Count(20, pause=0.05)
print("start", flush=True)
sys.stdin.readline()
store = Store(sys.argv[1], checkpoint_seconds=0.0)
entry = store.compute(spec, spec.compute, waiting=lambda: print("waiting", flush=True))
print(entry.about["seconds"], flush=True)
"""

STAGES = (Row(0.01, 0.05, 1, 0.0, 3000), Row(0.01, 0.0, 100, 0.05, 3000), Row(0.01, 0.1, 30, 0.0, 500))
SPEC = Training("bias", STAGES, width=120, test=500, per_decade=10)
TRAINING = f"""
import sys
from steppe.papers.wen2023.training import Row, Training
from steppe.store import Store
spec = {SPEC!r}
Store(sys.argv[1], checkpoint_seconds=0.0).compute(spec, lambda c: spec.compute(c, None))
"""


def start(script, root):
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def release(*processes):
    """Release all of them at once, after the slowest has started."""
    assert all(process.stdout.readline() == "start\n" for process in processes)
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.split()


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("result.json", "curves.parquet", "params.safetensors")}


def steps_of(checkpoint):
    """The number of steps at the last save."""
    saved = checkpoint.load()
    return 0 if saved is None else int(saved["counts"][1])


def test_one_computes_and_the_other_reads(tmp_path):
    processes = [start(SCRIPT, tmp_path) for _ in range(3)]
    release(*processes)
    answers = [finished(p) for p in processes]
    assert sum("waiting" in a for a in answers) == 2
    assert len({a[-1] for a in answers}) == 1  # the very same run, seconds and all
    assert Store(tmp_path).get(SLOW).result == {"sum": 190.0}


def test_a_killed_count_continues(tmp_path):
    process, checkpoint = start(SCRIPT, tmp_path), Store(tmp_path)._checkpoint(address(SLOW))
    release(process)
    while checkpoint.load() is None:
        assert process.poll() is None, "finished before it was killed"
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert Store(tmp_path).ids() == []
    assert 0 < len(checkpoint.load()["done"]) < 20
    finished(start(SCRIPT, tmp_path))
    assert Store(tmp_path).get(SLOW).result == {"sum": 190.0}


def test_a_training_killed_at_random_moments_ends_in_the_same_bytes(tmp_path):
    """Three stages (1-SAM, full batch, mini-batch), killed twice by SIGKILL, the second time after it had continued.

    This process then finishes the run.
    """

    def ended(root):
        return contents(Store(root).compute(SPEC, lambda c: SPEC.compute(c, None)).folder)

    expected, id = ended(tmp_path / "whole"), address(SPEC)

    moments, root, steps = random.Random(0), tmp_path / "killed", [0]
    checkpoint = Store(root)._checkpoint(id)
    for _ in range(2):
        process = start(TRAINING, root)
        while steps_of(checkpoint) == steps[-1]:  # until it has passed the last checkpoint
            assert process.poll() is None, "finished before it was killed"
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
        steps.append(steps_of(checkpoint))
    assert steps == sorted(set(steps))
    assert ended(root) == expected
    assert [p.name for p in root.iterdir() if not p.name.startswith(".")] == [id]
