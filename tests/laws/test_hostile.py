"""No public function answers a wrong argument with an obscure error, a hang or a misleading result.

A share of what `python tests/fuzzer.py` tries: two hostile values for each argument of each public function.
"""

import time

import pytest
from fuzzer import HOSTILE, callables, fault, fresh, share, targets

TARGETS = {target.name: target for target in targets()}
ROOMS = sorted({name.split(".")[1] for name in TARGETS})
# A call of these takes a second: one value is enough here.
SLOW = {"steppe.audit", "steppe.critical_rate", "steppe.rates.sweep", "steppe.torch.Monitor"}
# Of one room; a slow machine tries fewer values.
SECONDS = 6


def test_every_public_function_is_tried():
    assert set(TARGETS) == {name for name, _ in callables()}
    for room in ("torch", "rates", "flattening", "auditing", "sweep", "store", "measures", "linalg", "data"):
        assert room in ROOMS
    assert len(TARGETS) > 200


@pytest.mark.parametrize("room", ROOMS)
def test_hostile_values(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults, end = {}, time.monotonic() + SECONDS
    for name, target in TARGETS.items():
        if name.split(".")[1] == room:
            for argument, k in share(target, 1 if name in SLOW else 2):
                found = fault(target, fresh(target) | {argument: HOSTILE[k]})
                if found is not None:
                    faults[name, argument, k] = found
                if time.monotonic() > end:
                    break
    assert faults == {}
