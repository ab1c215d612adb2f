"""What long work says of itself."""

from functools import partial

import jax.numpy as jnp

import steppe
from steppe.cli._board import Board
from steppe.dynamics import Progress

NEWS = Progress(10, 10.0, 100.0, 5.0, {"loss": 0.25, "sharpness": 12.345, "lr": 0.0123})


def test_plain_lines_name_the_run_and_what_it_came_to(capsys):
    with Board({"one": "figure 1"}, silent=False) as board:
        board("one", "running", NEWS)
        board("two", "running", NEWS)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "figure 1: running · epoch 10/100 · loss 2.50e-01 · sharpness 12.35 · steps/s 5 · left 18 s"
    assert second.startswith("η = 0.0123: running")


def test_runs_without_a_label_are_shown_while_they_run():
    board = Board({"one": "figure 1"}, silent=True)
    board("one", "running", NEWS)
    board("abcdefghij", "running", None)
    assert list(board._table().columns[0].cells) == ["figure 1", "abcdefgh"]
    board("abcdefghij", "done", None)
    assert list(board._table().columns[0].cells) == ["figure 1"]


def test_a_flow_tells_how_far_it_is(capsys):
    p = steppe.Problem(lambda w, x: x @ w, jnp.ones(3), jnp.eye(3), jnp.zeros(3), steppe.losses.mse)
    with Board({"mine": "mine"}, silent=False) as board:
        steppe.critical_rate(p, losses=[0.01], progress=partial(board, "mine", "running"))
    assert capsys.readouterr().err.startswith("mine: running · epoch 1 · loss ")
