"""Is a training run at the edge of stability? Read off while it runs, within a share of its time."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import numpy as np
import torch

from steppe import check, linalg
from steppe._guard import guard
from steppe.estimate import Accuracy
from steppe.torch._network import Network
from steppe.torch._network import _bare as bare
from steppe.torch._probe import Point, Probe, dot, first_batch, flat
from steppe.torch._records import Row, Table, writer
from steppe.torch._stability import Stability, Tensors, stability

# An eigenvalue to plot against 2/lr; a certified call may not take more than this.
ONE_PERCENT = Accuracy(1e-2, max_matvecs=200)
# Products of the first call of a tracker, as expected before it: most take 15 to 30.
_FIRST = 40
# Until the first eigenvalue, for which time has to be saved, the ratio of the edge may take this share of it.
_EDGE_SHARE = 0.25
SHARPNESS, PRECONDITIONED = "sharpness", "preconditioned"


@final
class Monitor:
    """Measures λ_max and the edge of stability of any training loop:

        monitor = steppe.torch.Monitor(model, optimizer, data, loss)          # before the loop
        monitor.draw("edge.png")                                              # at any time

    Every measurement is one row, taken at the parameters w before a step of the optimiser:

    - `edge`: ΔᵀHΔ/(−gᵀΔ), with Δ the step that the optimiser really made. For any optimiser, the loss of the batch
      falls, to second order, while it is below 2. One product with H = ∇²L(w).
    - `sharpness`: λ_max(H), by a tracker that is warm from the last measurement.
    - `preconditioned`: λ_max(P⁻¹H) in the convention that `monitor.convention` states, and the `threshold` where the
      optimiser becomes unstable: 2/lr for gradient descent. For SGD with momentum, RMSProp, Adam and AdamW.
    - `loss`, `gradient_norm`, `lr`, `settled` (the eigenvalues are accurate to `accuracy`), `matvecs`, `overhead`.

    All of them are of one batch: `data` is a batch as `steppe.torch.Problem` takes it, or a DataLoader, of which the
    first one is taken. `loss` is that of the training, or None if the model returns it as `.loss`. A call of
    `monitor.batch(inputs, targets)` before a step adds `batch_edge`, the same ratio on the batch at hand.

    A measurement waits until it costs no more than the share `overhead` of the time that the training took; `every`
    fixes the number of steps between two instead. Parameters, gradients, buffers, modes and random numbers are not
    touched. `csv` names a file that gets every row at once; `to` takes writers of TensorBoard, runs of Weights &
    Biases, and functions of a row. `state_dict` continues a run. `close`, or leaving a `with`, removes the hooks.

    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[1.0, 0.0]]))
    >>> data = torch.eye(2), torch.zeros(2, 1)                              # L = ½‖w‖², H = I
    >>> descent = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> with Monitor(model, descent, data, torch.nn.functional.mse_loss, every=1) as monitor:
    ...     torch.nn.functional.mse_loss(model(data[0]), data[1]).backward()
    ...     descent.step()
    >>> row = monitor.rows[0]
    >>> round(row["edge"], 6), round(row["sharpness"], 6), row["threshold"]  # η gᵀHg/gᵀg, λ_max, 2/η
    (0.5, 1.0, 4.0)
    """

    @guard
    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        data: Any,
        loss: Any = None,
        *,
        overhead: float = 0.1,
        every: int | None = None,
        sharpness: bool = True,
        preconditioned: bool = True,
        accuracy: Accuracy = ONE_PERCENT,
        csv: str | Path | None = None,
        to: Iterable[Any] = (),
        attach: bool = True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        started = clock()
        self._model, self._optimizer, self._loss, self._clock = bare(model), optimizer, loss, clock
        self.share = check.number("overhead", overhead, above=0.0, remedy="Pass a share of the time, such as 0.1.")
        self._every = None if every is None else check.integer("every", every, minimum=1)
        Accuracy.expected(accuracy)
        self._network, self._params = _moved_by(optimizer, self._model)
        self._probe = Probe(self._model, self._network, first_batch(data), loss)
        p = sum(v.numel() for v in self._params)
        self._wanted = tuple(name for name, on in ((SHARPNESS, sharpness), (PRECONDITIONED, preconditioned)) if on)
        self._trackers = {name: linalg.Tracker(p, accuracy=accuracy) for name in (SHARPNESS, PRECONDITIONED)}
        self.convention = "no formula for this optimiser: watch the edge, ΔᵀHΔ/(−gᵀΔ) = 2"
        self._names = self._matrices(stability(optimizer, self._params))
        self.steps, self.training, self.spent = 0, 0.0, 0.0
        self._edge_spent, self._mark = 0.0, math.nan
        self._before: Tensors | None = None
        self._full = False
        self._batch: Any = None
        # What the next measurement is expected to cost.
        graph, product = self._try()
        self._edge_seconds = 2 * (graph + product)
        self._full_seconds = deque([graph + _FIRST * product * len(self._names)], maxlen=2)
        self._table = Table(csv)
        self._writers = [writer(one) for one in to]
        self._hooks = []
        if attach:
            self._hooks.append(optimizer.register_step_pre_hook(lambda *_: self.before_step()))
            self._hooks.append(optimizer.register_step_post_hook(lambda *_: self.after_step()))
        self.spent += clock() - started

    # What a loop calls.

    def batch(self, *batch: Any) -> None:
        """The batch of the next step, as (inputs, targets) or one dictionary: `batch_edge` is measured on it."""
        self._batch = batch if len(batch) > 1 else batch[0]

    @property
    def rows(self) -> list[Row]:
        """The measurements, as dictionaries."""
        return self._table.rows

    def table(self) -> dict[str, list[Any]]:
        """The measurements as columns: `pandas.DataFrame(monitor.table())`."""
        return self._table.columns()

    @property
    def overhead(self) -> float:
        """The time of all measurements as a share of the time of the training."""
        return self.spent / self.training if self.training > 0 else math.nan

    def draw(self, path: str | Path | None = None) -> Any:
        """A figure: curvature against the threshold, the edge against 2, the loss. Saved at `path` if there is one."""
        figure = self._table.draw(self.convention)
        if path is not None:
            figure.savefig(path)
        return figure

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        last = "nothing measured yet"
        if self.rows:
            shown = {k: v for k, v in self.rows[-1].items() if isinstance(v, float) and math.isfinite(v)}
            last = ", ".join(f"{name} {value:.4g}" for name, value in shown.items())
        return f"Monitor of step {self.steps}: {last}\n{self.convention}"

    def state_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "training": self.training,
            "spent": self.spent,
            "edge_spent": self._edge_spent,
            "table": self.table(),
            "trackers": {name: _state(tracker) for name, tracker in self._trackers.items()},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continues the run; the CSV file is cut to the rows of this state."""
        for name in ("steps", "training", "spent"):
            setattr(self, name, state_dict[name])
        self._edge_spent, self._mark = state_dict["edge_spent"], math.nan
        self._table.replace(state_dict["table"])
        for name, tracker in self._trackers.items():
            self._trackers[name] = _restored(tracker, state_dict["trackers"][name])

    # What the optimiser calls.

    def before_step(self) -> None:
        """Call it before `optimizer.step()` if the monitor was made with attach=False."""
        now = self._clock()
        if math.isfinite(self._mark):
            self.training += now - self._mark
        self._mark = now
        self._before, self._full = None, self._due_in_full()
        if self._full or self._edge_due():
            self._before = [p.detach().clone() for p in self._params]
            self._spend(now)

    def after_step(self) -> None:
        """Call it after `optimizer.step()` if the monitor was made with attach=False."""
        now = self._clock()
        self.training += now - self._mark
        self._mark = now
        self.steps += 1
        if self._before is not None:
            step = [p.detach() - before for p, before in zip(self._params, self._before, strict=True)]
            self._measure(self._before, step)
            self._spend(now)
            self._learn(self._mark - now)
        self._before = self._batch = None

    # When to measure.

    def _due_in_full(self) -> bool:
        """Whether a measurement is affordable that costs as much as the dearer one of the last two."""
        if self._every is not None:
            return self.steps % self._every == 0
        return self.spent + max(self._full_seconds) <= self.share * self.training

    def _edge_due(self) -> bool:
        if self._every is not None or all(self._trackers[name].vectors is not None for name in self._names):
            return False
        return self._edge_spent + self._edge_seconds <= _EDGE_SHARE * self.share * self.training

    def _spend(self, since: float) -> None:
        if self._params[0].device.type == "cuda":
            torch.cuda.synchronize(self._params[0].device)
        self._mark = self._clock()
        self.spent += self._mark - since

    # What to measure.

    def _try(self) -> tuple[float, float]:
        """The seconds of a gradient with its graph, and of a product. A loss without a second derivative is refused
        here, and not in the middle of a run."""
        with linalg.one_thread():  # imports the libraries that it controls
            pass
        for _ in range(2):  # the first product is slower than all others
            started = self._clock()
            with self._probe.at(self._params) as point:
                built = self._clock()
                try:
                    point.refuse_once_differentiable()
                    point.product([torch.ones_like(p) for p in self._params])
                except (NotImplementedError, RuntimeError) as error:
                    remedy = "Replace the layer that it names, or make its backward differentiable."
                    check.refuse("model", "twice differentiable", str(error), remedy)
            done = self._clock()
        return built - started, done - built

    def _measure(self, w: Tensors, step: Tensors) -> None:
        with self._probe.at(w) as point:
            norm = math.sqrt(dot(point.gradient, point.gradient))
            known = stability(self._optimizer, self._params)
            self._names = self._matrices(known)
            row: Row = {
                "step": self.steps,
                "loss": point.loss,
                "gradient_norm": norm,
                "lr": float(self._optimizer.param_groups[0]["lr"]),
                "edge": self._edge(point, step),
                "batch_edge": math.nan,
                "sharpness": math.nan,
                "preconditioned": math.nan,
                "threshold": known.edge(norm) if known is not None else math.nan,
                "settled": False,
                "matvecs": 1,
                "overhead": self.overhead,
            }
            if self._full and math.isfinite(norm):
                self._eigenvalues(point, known, row)
        if self._batch is not None:
            with Probe(self._model, self._network, self._batch, self._loss).at(w) as point:
                row["batch_edge"] = self._edge(point, step)
        self._table.add(row)
        for write in self._writers:
            write(row)

    def _edge(self, point: Point, step: Tensors) -> float:
        falls = -dot(point.gradient, step)
        # The step of GradScaler after an overflow is zero, and a run that diverged has no edge.
        return dot(step, point.product(step)) / falls if falls and math.isfinite(falls) else math.nan

    def _matrices(self, known: Stability | None) -> tuple[str, ...]:
        """The matrices whose λ_max is wanted. If one step size serves all parameters, H is the only one."""
        if known is not None:
            self.convention = known.convention
        if known is not None and known.scales is None:
            return (SHARPNESS,) if self._wanted else ()
        return tuple(name for name in self._wanted if name == SHARPNESS or known is not None)

    def _eigenvalues(self, point: Point, known: Stability | None, row: Row) -> None:
        for name in self._names:
            scaled = known if name == PRECONDITIONED else None
            try:
                with linalg.one_thread():
                    # Between two measurements the spectrum may move far: without a certified call, values were off by
                    # up to 30% in a fast phase.
                    found, self._trackers[name] = self._trackers[name].insist(partial(self._times, point, scaled))
            except check.ArgumentError:  # a product that is not finite: the run diverges
                return
            row[name], row["matvecs"] = found.value, row["matvecs"] + found.matvecs
        row["settled"] = bool(self._names) and all(self._trackers[name].settled for name in self._names)
        if known is not None and known.scales is None:
            row["preconditioned"] = row["sharpness"]

    def _times(self, point: Point, scaled: Stability | None, v: Any) -> Any:
        """Hv, or S(H + decay)S v."""
        along = self._network.split(self._network.tensor(v))
        if scaled is None or scaled.scales is None:
            return flat(point.product(along))
        along = list(torch._foreach_mul(along, scaled.scales))
        product = point.product(along)
        if scaled.decay is not None:
            product = [h + d * x for h, d, x in zip(product, scaled.decay, along, strict=True)]
        return flat(list(torch._foreach_mul(product, scaled.scales)))

    def _learn(self, seconds: float) -> None:
        """What the measurement cost, for the next decision."""
        if self._full:
            self._full_seconds.append(seconds)
        else:
            self._edge_seconds = seconds
            self._edge_spent += seconds


def _state(tracker: linalg.Tracker) -> dict[str, Any]:
    """Plain types and tensors: torch.load reads them with weights_only."""
    state = {name: getattr(tracker, name) for name in _STATE}
    for name, value in state.items():
        if isinstance(value, np.generic):
            state[name] = value.item()
        elif isinstance(value, np.ndarray):
            state[name] = torch.from_numpy(value.copy())
    return state


def _restored(tracker: linalg.Tracker, state: dict[str, Any]) -> linalg.Tracker:
    if state["p"] != tracker.p:
        check.refuse("state_dict", f"of {tracker.p} parameters", state["p"], "Load it for the same model.")
    return replace(tracker, **{name: v.numpy() if isinstance(v, torch.Tensor) else v for name, v in state.items()})


# What a linalg.Tracker carries from call to call.
_STATE = ("p", "vectors", "values", "watch", "before", "growth", "slows", "calls", "takeover", "settled", "fell")


def _moved_by(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> tuple[Network, Tensors]:
    """The parameters that the optimiser moves, in the order of the model."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        check.refuse("optimizer", "an optimiser of torch", optimizer, "Pass the one whose step the loop calls.")
    ids = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    params = [p for p in model.parameters() if id(p) in ids]
    if not params or len(params) < len(ids):
        got = f"{len(ids)} parameters, of which the model has {len(params)}"
        check.refuse("optimizer", "one of the parameters of the model", got, "Pass the module that holds all of them.")
    return Network(model, lambda name, p: id(p) in ids), params
