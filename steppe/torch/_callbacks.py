"""The monitor in training loops that other packages own: the Trainer of Hugging Face, and Lightning.

The classes are built when they are first asked for, and derive from the package's own base class where it is installed:
importing steppe.torch imports neither.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from steppe.torch._monitor import Monitor

# The file of a monitor beside a checkpoint of the Trainer.
STATE = "steppe_monitor.pt"


@cache
def trainer_callback() -> type:
    """The class `steppe.torch.TrainerCallback`."""
    base = _base(["transformers"], "TrainerCallback")

    class TrainerCallback(base):  # type: ignore[misc, valid-type]
        """The monitor as a callback of transformers.Trainer: `Trainer(..., callbacks=[TrainerCallback(csv="m.csv")])`.

        `data` and `loss` are those of `Monitor`: by default the first batch of the training data, and the loss that the
        model returns. Other options are passed on. `monitor` is the monitor, once the training has started. A
        checkpoint gets its state beside it, and a run that is resumed goes on from there.
        """

        def __init__(self, data: Any = None, loss: Any = None, **options: Any) -> None:
            self.monitor: Monitor | None = None
            self._data, self._loss, self._options = data, loss, options

        def on_train_begin(
            self, args: Any, state: Any, control: Any, *, model: Any, optimizer: Any, **given: Any
        ) -> None:
            data = given["train_dataloader"] if self._data is None else self._data
            # The Trainer says when it steps: its optimiser may be a wrapper without hooks.
            bare = getattr(optimizer, "optimizer", optimizer)
            self.monitor = Monitor(model, bare, data, self._loss, attach=False, **self._options)
            kept = Path(args.output_dir) / f"checkpoint-{state.global_step}" / STATE
            if state.global_step and kept.exists():
                self.monitor.load_state_dict(torch.load(kept, weights_only=True))

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if self.monitor is not None:
                self.monitor.before_step()

        def on_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if self.monitor is not None:
                self.monitor.after_step()

        def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            if self.monitor is not None and state.is_world_process_zero and folder.is_dir():
                torch.save(self.monitor.state_dict(), folder / STATE)

    return TrainerCallback


@cache
def lightning_callback() -> type:
    """The class `steppe.torch.LightningCallback`."""
    base = _base(["lightning.pytorch", "pytorch_lightning"], "Callback")

    class LightningCallback(base):  # type: ignore[misc, valid-type]
        """The monitor as a callback of Lightning: `Trainer(callbacks=[LightningCallback((x, y), loss)])`.

        `data`, `loss` and the options are those of `Monitor`, with the LightningModule as the model. Of several
        optimisers it watches number `optimizer`. `monitor` is the monitor, once the training has started. Its state is
        in Lightning's checkpoints.
        """

        def __init__(self, data: Any, loss: Any = None, *, optimizer: int = 0, **options: Any) -> None:
            self.monitor: Monitor | None = None
            self._data, self._loss, self._number, self._options = data, loss, optimizer, options
            self._kept: dict[str, Any] = {}

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            # Hooks, because Lightning calls on_before_optimizer_step inside the closure of the step.
            self.monitor = Monitor(pl_module, trainer.optimizers[self._number], self._data, self._loss, **self._options)
            if self._kept:
                self.monitor.load_state_dict(self._kept)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.monitor is not None:
                self.monitor.close()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.on_train_end(trainer, pl_module)

        def state_dict(self) -> dict[str, Any]:
            return self._kept if self.monitor is None else self.monitor.state_dict()

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            self._kept = state_dict  # Lightning restores callbacks before the training starts

    return LightningCallback


CALLBACKS: dict[str, Callable[[], type]] = {
    "TrainerCallback": trainer_callback,
    "LightningCallback": lightning_callback,
}


def _base(modules: list[str], name: str) -> type:
    """The base class of the package, `object` where it is not installed: its methods alone are what a loop calls."""
    for module in modules:
        if find_spec(module.partition(".")[0]) is not None:
            base: type = getattr(import_module(module), name)
            return base
    return object
