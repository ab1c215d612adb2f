"""A spec from its stored JSON, for every kind of experiment that the papers have."""

import json

import pytest

from steppe.check import ArgumentError
from steppe.experiments import own, spec_of
from steppe.papers import papers
from steppe.store import address, canonical
from steppe.until import steps


def test_every_kind_of_every_paper():
    kinds = {}
    for paper in papers().values():
        for figure in paper.figures:
            for specs in figure.runs.values():
                kinds |= {type(spec): spec for spec in specs}
    assert len(kinds) > 5
    for spec in kinds.values():
        again = spec_of(json.loads(json.dumps(canonical(spec))))
        assert type(again) is type(spec)
        assert address(again) == address(spec)


def test_a_run_of_ones_own():
    spec = own("cases.own_functions:quadratic", stop=steps(3), lr=0.1)
    assert spec_of(canonical(spec)) == spec


def test_refused():
    stored = canonical(own("cases.own_functions:numbers", a=1.0))
    with pytest.raises(ArgumentError, match="Did you mean 'own'"):
        spec_of(stored | {"kind": "ow"})
    with pytest.raises(ArgumentError, match="other fields"):
        spec_of(stored | {"more": 1})
