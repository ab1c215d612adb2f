"""One training run of wen2023: data, network, stages of table 2, and what its figures plot."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from steppe.store import Checkpoint, Computed


@dataclass(frozen=True)
class Row:
    """A row of table 2: gradient descent where rho is 0, else SAM."""

    lr: float
    rho: float
    batch_size: int
    weight_decay: float
    epochs: int


@dataclass(frozen=True)
class Training:
    """A two-layer ReLU net on P_xor, initialised as PyTorch does; `seed` decides data, start and order of examples."""

    KIND: ClassVar[str] = "wen2023/training"

    network: Literal["no-bias", "bias"]
    stages: tuple[Row, ...]
    seed: int = 0
    d: int = 30
    n: int = 100
    width: int = 500
    test: int = 10_000
    loss: str = "mse"
    precision: Literal["float32", "float64"] = "float32"
    per_decade: int = 20

    def compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        """Train; curves of losses, test accuracy, trace and norm against epochs, and their last values."""
        import jax

        with jax.enable_x64(self.precision == "float64"):
            return self._compute(checkpoint, progress)

    def _compute(self, checkpoint: "Checkpoint | None", progress: Callable[[Any], None] | None) -> "Computed":
        import numpy as np

        from steppe import measures, when
        from steppe.dynamics import Schedule, run
        from steppe.store import Computed

        problem, test = self.problems()
        rows = [(r.lr, r.rho, r.batch_size, r.weight_decay, r.epochs) for r in self.stages]
        record: dict[str, Callable[[Any, Any], Any]] = {
            "train_loss": measures.loss,
            "test_loss": lambda p, w: measures.loss(test, w),
            "test_accuracy": lambda p, w: measures.accuracy(test, w),
            "trace": measures.trace,
            "norm": measures.norm,
        }
        if self.network == "bias":
            record["least_trace"] = least_trace
        done = run(
            problem,
            Schedule.table(rows),
            record=record,
            when=when.logarithmic(per_decade=self.per_decade, in_epochs=True),
            progress=progress,
            checkpoint=checkpoint,
            key=self.seed,
        )
        last = {name: column[-1].item() for name, column in done.records.items()}
        trace = measures.trace(problem, done.w)
        result = {
            "outcome": done.outcome,
            "steps": done.steps,
            "gradients": done.gradients,
            "final": last,
            "trace_parts": {name: part.value for name, part in trace.parts.items()},
            "layer_norms": {name: e.value for name, e in measures.layer_norms(problem, done.w).items()},
        }
        params = {name: np.asarray(array) for name, array in problem.unravel(done.w).items()}
        return Computed(done.records, params, result)

    def problems(self) -> tuple[Any, Any]:
        """The training problem and the same network on the test set."""
        import numpy as np

        from steppe import losses
        from steppe.problems import Problem
        from steppe.problems.data import xor
        from steppe.problems.networks import TwoLayer

        # One stream of randomness for the data, one for the start: changing the width does not change the data.
        data = xor(self.d, self.n, test=self.test, key=np.random.default_rng([self.seed, 0]))
        network = TwoLayer(bias=self.network == "bias")
        start = network.init(self.d, self.width, np.random.default_rng([self.seed, 1]), self.precision)
        problem = Problem(network, start, data.x, data.y, losses.named(self.loss))
        return problem, problem.on(data.x_test, data.y_test)


def least_trace(problem: Any, w: Any) -> float:
    """The least trace of any 2-MLP-Bias with this net's own outputs: Eq. 3, valid away from interpolation too."""
    import numpy as np

    from steppe.constructions import bounds

    return bounds.two_layer_bias(np.asarray(problem.x), np.asarray(problem.predictions(w)))
