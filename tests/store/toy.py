"""A spec without science: counts to n, slowly if asked, and can be told to fail."""

import time
from dataclasses import dataclass

import numpy as np

from steppe.store import Computed


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
