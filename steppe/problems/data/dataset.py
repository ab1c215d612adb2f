"""Real data with a test set, and its targets as each loss takes them."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from steppe import check
from steppe.losses import Loss
from steppe.problems.data.encoding import Encoding, one_hot


class Supervised(NamedTuple):
    """Inputs and targets for one loss, one row an example, and the number of outputs that the network needs."""

    x: Any
    y: NDArray[Any]
    x_test: Any
    y_test: NDArray[Any]
    outputs: int


@dataclass(frozen=True, eq=False)
class Dataset:
    """`y` are class numbers where there are `classes`, else real targets (n, outputs).

    `squares` makes real targets of class numbers for losses of squares; the paper follows Cohen et al. (2021): 0 and 1.
    """

    name: str
    x: Any
    y: NDArray[Any]
    x_test: Any
    y_test: NDArray[Any]
    classes: int | None = None
    squares: Encoding = one_hot

    def __repr__(self) -> str:
        return f"Dataset({self.name}: {len(self.y)} + {len(self.y_test)} examples of {self.shape})"

    @property
    def shape(self) -> Any:
        """The shape of one example; a pytree of shapes where x is one."""
        return jax.tree.map(lambda a: a.shape[1:], self.x)

    def encoded(self, squares: Encoding) -> "Dataset":
        """The same with another encoding for losses of squares."""
        return replace(self, squares=squares)

    def supervised(self, loss: Loss) -> Supervised:
        """Class numbers for cross-entropy, ±1 for the logistic loss, `squares` for the others; real targets stay."""
        y, y_test, outputs = self._targets(loss)
        return Supervised(self.x, y, self.x_test, y_test, outputs)

    def _targets(self, loss: Loss) -> tuple[NDArray[Any], NDArray[Any], int]:
        if self.classes is None:
            if loss.name in ("cross_entropy", "logistic"):
                remedy = "Take steppe.losses.half_mse, or data with classes."
                check.refuse("loss", f"one for real targets, which {self.name} has", loss.name, remedy)
            return self.y, self.y_test, self.y.shape[-1]
        if loss.name == "cross_entropy":
            return self.y, self.y_test, self.classes
        if loss.name == "logistic":
            if self.classes != 2:
                remedy = f"{self.name} has {self.classes}: take steppe.losses.cross_entropy."
                check.refuse("loss", "one for more than two classes", "logistic", remedy)
            signs = [(2.0 * y[..., None] - 1.0).astype(np.float32) for y in (self.y, self.y_test)]
            return signs[0], signs[1], 1
        y, y_test = self.squares(self.y, self.y_test, self.classes)
        return y, y_test, y.shape[-1]
