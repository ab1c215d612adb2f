"""A wider network of the same function has the same trace; and the package stays light."""

import ast
from pathlib import Path

import numpy as np
import pytest
import steppe.constructions
import theory_nets as nets

from steppe.check import ArgumentError
from steppe.flattening import _memorising as memorising
from steppe.papers.wen2023.theory import generalising
from steppe.papers.wen2023.theory.widen import widen


@pytest.mark.parametrize(
    "params",
    [generalising.xor(3), generalising.no_bias_xor(3), memorising.deep(np.eye(3), [1, 0, 2], 3)],
    ids=["two-layer", "no-bias", "deep"],
)
def test_function_and_trace_do_not_change(params):
    x = nets.cube(3)
    y = nets.predict(nets.mlp, params, x)
    wide = widen(params, 9)
    assert {len(W) for W in wide.values()} == {9}
    assert np.array_equal(nets.predict(nets.mlp, wide, x), y)
    # Neither room size of the oracle nor dead neurons move the trace but for the order of a sum.
    exact = nets.gauss_newton(nets.mlp, params, x)
    assert nets.trace(nets.mlp, wide, x, y) == pytest.approx(exact, rel=1e-13)


def test_what_cannot_be_widened():
    with pytest.raises(ArgumentError, match="width must be a whole number ≥ 4"):
        widen(generalising.xor(3), 3)
    with pytest.raises(ArgumentError, match="without batch norm"):
        widen(generalising.sim_bn_xor(3), 8)


def test_no_jax():
    """The constructions are an oracle of the measures: they share no code with them, nor an array library."""
    for path in Path(steppe.constructions.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {
            alias.name if isinstance(node, ast.Import) else node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert not any(name.split(".")[0] == "jax" for name in names)
        assert not any(name.startswith(("steppe.measures", "steppe.dynamics")) for name in names)
