"""A spec without science: counts to n, slowly if asked, and can be told to fail."""

import time
from dataclasses import dataclass

import numpy as np

from steppe.store import Computed
from steppe.sweep import Composite


@dataclass(frozen=True)
class Count:
    n: int = 5
    pause: float = 0.0

    def compute(self, checkpoint, progress=None):
        if self.n < 0:
            raise ValueError("cannot count below zero")
        saved = checkpoint.load()
        done = [] if saved is None else list(saved["done"])
        while len(done) < self.n:
            time.sleep(self.pause)
            done.append(float(len(done)))
            if checkpoint.due():
                checkpoint.save({"done": np.array(done)})
        column = np.array(done)
        return Computed({"step": np.arange(self.n), "value": column}, {"w": column}, {"sum": column.sum()})


@dataclass(frozen=True)
class Total(Composite):
    """The sum of what is counted to n; then, as if it depended on it, to 2n; and so on, `rounds` times."""

    n: int = 3
    rounds: int = 2
    split: bool = True

    def parts(self):
        return [[Count(self.n * 2**k), Count(self.n * 2**k + 1)] for k in range(self.rounds)]

    def missing(self, get):
        absent = [[part for part in parts if get(part) is None] for parts in self.parts()]
        return next((parts for parts in absent if parts), [])

    def compose(self, get):
        total = sum(get(part).result["sum"] for parts in self.parts() for part in parts)
        return Computed({"step": np.arange(1)}, {"w": np.zeros(1)}, {"total": total})

    def compute(self, checkpoint, progress=None):
        return Computed({"step": np.arange(1)}, {"w": np.zeros(1)}, {"total": -1.0})


@dataclass(frozen=True)
class Deaf:
    """Never asks whether it is time for a checkpoint."""

    seed: int = 0

    def compute(self, checkpoint, progress=None):
        time.sleep(300)
