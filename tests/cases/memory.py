"""A checkpoint in memory, for runs that are cut and resumed."""

import numpy as np


class Memory:
    """A checkpoint that keeps its `number`-th save."""

    def __init__(self, number=None, saved=None):
        self.number, self.saved, self.calls = number, saved, 0

    def load(self):
        return self.saved

    def due(self):
        return True

    def save(self, arrays):
        self.calls += 1
        if self.calls == self.number:
            self.saved = {name: np.array(a) for name, a in arrays.items()}
