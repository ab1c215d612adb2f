"""The callbacks in loops that call them in the order of the Trainer of Hugging Face and of Lightning."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

import steppe.torch
from steppe.torch import _callbacks

ENTROPY = torch.nn.functional.cross_entropy


class Model(torch.nn.Module):
    """Returns its loss, as models of Hugging Face do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def forward(self, x, labels=None):
        logits = self.layers(x)
        return logits if labels is None else SimpleNamespace(loss=ENTROPY(logits, labels), logits=logits)


def examples():
    torch.manual_seed(1)
    return [{"x": torch.randn(5), "labels": torch.tensor(k % 2)} for k in range(8)]


class Accelerated(torch.optim.Optimizer):
    """An optimiser around another one, as Accelerate makes it; its own hooks are not called."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        self.optimizer.step()


def train_as_hugging_face(callback, folder, steps, *, resume=0, save_at=()):
    """The order of calls of Trainer._inner_training_loop, version 4.57."""
    model = Model()
    optimizer = Accelerated(torch.optim.AdamW(model.parameters(), lr=0.01))
    loader = torch.utils.data.DataLoader(examples(), batch_size=4)
    args, control = SimpleNamespace(output_dir=str(folder)), SimpleNamespace()
    state = SimpleNamespace(global_step=resume, is_world_process_zero=True)
    if resume:
        saved = torch.load(folder / f"checkpoint-{resume}" / "model.pt", weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.optimizer.load_state_dict(saved["optimizer"])
    given = {"model": model, "optimizer": optimizer, "lr_scheduler": None, "train_dataloader": loader}
    callback.on_train_begin(args, state, control, **given, eval_dataloader=None, processing_class=None)
    batch = next(iter(loader))
    while state.global_step < steps:
        model.zero_grad()
        model(**batch).loss.backward()
        callback.on_pre_optimizer_step(args, state, control, **given)
        optimizer.step()
        callback.on_optimizer_step(args, state, control, **given)
        state.global_step += 1
        if state.global_step in save_at:
            (where := folder / f"checkpoint-{state.global_step}").mkdir(parents=True)
            torch.save({"model": model.state_dict(), "optimizer": optimizer.optimizer.state_dict()}, where / "model.pt")
            callback.on_save(args, state, control, **given)


def test_the_trainer_of_hugging_face_and_its_resume(tmp_path):
    def callback():
        return steppe.torch.TrainerCallback(every=2, clock=lambda: 0.0)

    whole, first, second = callback(), callback(), callback()
    train_as_hugging_face(whole, tmp_path / "whole", 6)
    train_as_hugging_face(first, tmp_path / "cut", 4, save_at=(3,))
    train_as_hugging_face(second, tmp_path / "cut", 6, resume=3)
    assert whole.monitor.table()["step"] == [1, 3, 5]
    assert whole.monitor.rows[0]["sharpness"] > 0
    np.testing.assert_equal(second.monitor.table(), whole.monitor.table())


def train_as_lightning(callback, steps, *, checkpoint=None):
    """Lightning restores callbacks, starts, and calls on_before_optimizer_step inside the closure of a step."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = SimpleNamespace(optimizers=[optimizer])
    x, y = torch.stack([e["x"] for e in examples()]), torch.stack([e["labels"] for e in examples()])
    if checkpoint is not None:
        model.load_state_dict(checkpoint["model"])
        callback.load_state_dict(checkpoint["callback"])
    callback.on_train_start(trainer, model)

    def closure():
        optimizer.zero_grad()
        value = ENTROPY(model(x), y)
        value.backward()
        return value

    for _ in range(steps):
        optimizer.step(closure)
    saved = {"model": model.state_dict(), "callback": callback.state_dict()}
    callback.on_train_end(trainer, model)
    assert not optimizer._optimizer_step_pre_hooks
    return saved


def test_lightning_and_its_resume():
    x, y = torch.stack([e["x"] for e in examples()]), torch.stack([e["labels"] for e in examples()])

    def callback():
        return steppe.torch.LightningCallback((x, y), ENTROPY, every=2, clock=lambda: 0.0)

    whole, first, second = callback(), callback(), callback()
    assert first.state_dict() == {}
    train_as_lightning(whole, 6)
    train_as_lightning(second, 3, checkpoint=train_as_lightning(first, 3))
    assert whole.monitor.table()["step"] == [1, 3, 5]
    np.testing.assert_equal(second.monitor.table(), whole.monitor.table())


@pytest.mark.parametrize(
    ("build", "module", "name"),
    [
        (_callbacks.trainer_callback, "transformers", "TrainerCallback"),
        (_callbacks.lightning_callback, "pytorch_lightning", "Callback"),
    ],
)
def test_the_base_class_is_that_of_an_installed_package(build, module, name, monkeypatch):
    base, package = type(name, (), {"on_epoch_end": lambda self: "theirs"}), ModuleType(module)
    setattr(package, name, base)
    monkeypatch.setitem(sys.modules, module, package)
    monkeypatch.setattr(_callbacks, "find_spec", lambda found: package if found == module else None)
    built = build.__wrapped__()
    assert issubclass(built, base)
    assert built(None).on_epoch_end() == "theirs"


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'Trainer'"):
        steppe.torch.Trainer  # noqa: B018
