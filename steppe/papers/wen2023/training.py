"""One training run of wen2023: data, network, the stages of table 2, and the curves that its figures show."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from steppe.experiments import Experiment
from steppe.store import Checkpoint, Computed

if TYPE_CHECKING:
    from steppe.dynamics import Schedule


@dataclass(frozen=True)
class Row:
    """A row of table 2: gradient descent if rho is 0, else SAM.

    `bias_decay` is weight decay of the first layer's bias alone. With `held` > 0, (W₁, b₁) is scaled to this norm
    after every step. `label_noise` is the σ of Gaussian noise on the labels, drawn anew in every step.
    """

    lr: float
    rho: float
    batch_size: int
    weight_decay: float
    epochs: int
    bias_decay: float = 0.0
    held: float = 0.0
    label_noise: float = 0.0


def gd(lr: float, batch_size: int, weight_decay: float, epochs: float, **rest: float) -> Row:
    """Gradient descent; a batch size below n makes it stochastic."""
    return Row(lr, 0.0, batch_size, weight_decay, int(epochs), **rest)


def sam(lr: float, rho: float, epochs: float, **rest: float) -> Row:
    """1-SAM: one example in each step."""
    return Row(lr, rho, 1, 0.0, int(epochs), **rest)


@dataclass(frozen=True)
class Training(Experiment, kind="wen2023/training"):
    """A network on data, initialised as PyTorch does. `seed` decides the data, the start and the order of examples.

    `first_layer_scale` multiplies the start of (W₁, b₁); `gamma` is the start of γ in a simplified BatchNorm; `eps` is
    the ε of a layer normalisation.
    """

    network: Literal["no-bias", "bias", "sim-bn", "sim-ln", "batch-norm", "layer-norm"]
    stages: tuple[Row, ...]
    seed: int = 0
    d: int = 30
    n: int = 100
    width: int = 500
    test: int = 10_000
    loss: str = "mse"
    data: Literal["xor", "ball", "parity", "mixture"] = "xor"
    activation: Literal["relu", "softplus", "leaky_relu"] = "relu"
    depth: int = 2
    first_layer_scale: float = 1.0
    gamma: float = 0.1
    eps: float = 1e-5
    precision: Literal["float32", "float64"] = "float32"
    per_decade: int = 20

    def run(self, checkpoint: Checkpoint | None, progress: Callable[[Any], None] | None) -> Computed:
        """Train. The curves are losses, accuracy, trace and properties of the minimum against epochs."""
        import numpy as np

        from steppe import measures, when
        from steppe.dynamics import run
        from steppe.papers.wen2023 import recorded

        problem, test = self.problems()
        record: dict[str, Callable[[Any, Any], Any]] = {
            "train_loss": measures.loss,
            "test_loss": lambda p, w: measures.loss(test, w),
            "test_accuracy": lambda p, w: measures.accuracy(test, w),
            "trace": measures.trace,
            "norm": measures.norm,
        }
        if recorded.least_trace_is_known(self):
            record["least_trace"] = recorded.least_trace
        if recorded.properties_are_known(self):
            record |= recorded.PROPERTIES
        done = run(
            problem,
            self.schedule(),
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
            "bound": recorded.least_trace_at_interpolation(self, problem),
            "trace_parts": {name: part.value for name, part in trace.parts.items()},
            "layer_norms": {name: e.value for name, e in measures.layer_norms(problem, done.w).items()},
        }
        params = {name: np.asarray(array) for name, array in problem.unravel(done.w).items()}
        return Computed(done.records, params, result)

    def schedule(self) -> "Schedule":
        from steppe.dynamics import GD, SAM, Decayed, LabelNoise, Projected, Schedule, Stage

        def dynamics(row: Row) -> Any:
            step: Any = (
                SAM(row.lr, row.rho, row.batch_size, weight_decay=row.weight_decay)
                if row.rho
                else GD(row.lr, weight_decay=row.weight_decay, batch_size=row.batch_size)
            )
            if row.label_noise:
                step = LabelNoise(step, row.label_noise)
            if row.bias_decay:
                step = Decayed(step, {"b1"}, row.lr * row.bias_decay)
            return Projected(step, {"W1", "b1"}, row.held) if row.held else step

        return Schedule(tuple(Stage(dynamics(row), row.epochs) for row in self.stages))

    def problems(self) -> tuple[Any, Any]:
        """The training problem, and the same network on the test set."""
        import numpy as np

        from steppe import losses
        from steppe.problem import Problem

        # One random stream for the data, one for the start: another width leaves the data as they are.
        split = self.split(np.random.default_rng([self.seed, 0]))
        network = self.build(split.x)
        scales = {"first_layer_scale": self.first_layer_scale}
        if self.network == "sim-bn":
            scales["gamma"] = self.gamma
        start = network.init(self.d, self.width, np.random.default_rng([self.seed, 1]), self.precision, **scales)
        problem = Problem(network, start, split.x, split.y, losses.named(self.loss))
        return problem, problem.on(split.x_test, split.y_test)

    def split(self, rng: Any) -> Any:
        """Training set and test set."""
        from steppe import data

        sizes: dict[str, Any] = {"test": self.test, "key": rng}
        if self.data == "parity":
            return data.parity(self.d, self.n, (0, 1, 2), **sizes)
        kinds: dict[str, Callable[..., Any]] = {"xor": data.xor, "ball": data.ball, "mixture": data.xor_mixture}
        return kinds[self.data](self.d, self.n, **sizes)

    def build(self, x: Any) -> Any:
        """The network. Batch normalisation takes its statistics from the training inputs x."""
        from steppe import networks
        from steppe.activations import leaky_relu, relu, softplus

        activation = {"relu": relu, "softplus": softplus, "leaky_relu": leaky_relu()}[self.activation]
        if self.network in ("no-bias", "bias"):
            bias = self.network == "bias"
            if self.depth == 2:
                return networks.TwoLayer(bias=bias, activation=activation)
            return networks.MLP(self.depth, bias=bias, activation=activation)
        if self.network == "sim-bn":
            return networks.SimBN(x, activation=activation)
        if self.network == "batch-norm":
            return networks.BatchNorm(x, activation=activation)
        if self.network == "layer-norm":
            return networks.LayerNorm(activation=activation)
        return networks.SimLN(self.eps, activation=activation)
