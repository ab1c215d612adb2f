"""Runs as the store returns them, without the disk: what a paper's checks and figures read."""

import json
import types

import numpy as np

from steppe.store import address, canonical


class Finished:
    """A computed spec with the fields of a store's entry."""

    def __init__(self, spec):
        done = spec.compute(None, None)
        self.spec, self.id = json.loads(json.dumps(canonical(spec))), address(spec)
        self.curves, self.params = dict(done.curves), dict(done.params)
        self.result = json.loads(json.dumps(done.result))

    def changed(self, **columns):
        """A copy with changed columns: each argument maps a column to the one that replaces it."""
        other = types.SimpleNamespace(**self.__dict__)
        other.curves = self.curves | {name: np.asarray(change(self.curves[name])) for name, change in columns.items()}
        return other
