"""What long work says of itself."""

import contextlib
import io
import sys
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import steppe
from steppe.cli._board import Board, Pace
from steppe.dynamics import Progress

NEWS = Progress(10, 10.0, 100.0, 5.0, {"loss": 0.25, "sharpness": 12.345, "lr": 0.0123})


def test_plain_lines_name_the_run_and_what_it_came_to(capsys):
    with Board({"one": "figure 1"}, silent=False) as board:
        board("one", "running", NEWS)
        board("two", "running", NEWS)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "figure 1: running · epoch 10/100 · loss 2.50e-01 · sharpness 12.35 · steps/s 5"
    assert second.startswith("η = 0.0123: running")


def test_runs_without_a_label_are_shown_while_they_run():
    board = Board({"one": "figure 1"}, silent=True)
    board("one", "running", NEWS)
    board("abcdefghij", "running", None)
    assert list(board._table().columns[0].cells) == ["figure 1", "abcdefgh"]
    board("abcdefghij", "done", None)
    assert list(board._table().columns[0].cells) == ["figure 1"]


def test_running_rows_come_first_and_the_total_is_shown():
    board = Board({str(k): f"run {k}" for k in range(100)}, silent=True)
    for k in range(20):
        board(str(k), "stored", None)
    board("20", "done", None)
    for k in (90, 95):
        board(str(k), "running", None)
    table = board._table()
    cells = list(table.columns[0].cells)
    assert cells[:3] == ["run 90", "run 95", "run 21"]
    assert cells[-1] == "… and 59 more"
    assert table.title.startswith("100 runs: 20 stored, 1 done, 2 running, 77 queued")


@pytest.mark.parametrize("error", [None, KeyboardInterrupt()])
def test_a_terminal_is_left_without_rows(error, monkeypatch):
    """The last thing that is drawn is erased: no row says "running" of a run that was stopped."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with contextlib.suppress(KeyboardInterrupt), Board({"one": "figure 1"}, silent=False) as board:
        board("one", "running", NEWS)
        board.live.refresh()
        assert "running" in screen.getvalue()
        if error is not None:
            raise error
        board("one", "done", None)
    erase = "\x1b[2K"
    after = screen.getvalue().rpartition(erase)[2]
    assert erase in screen.getvalue()
    assert "running" not in after
    assert ("1 runs: 1 done" in after) == (error is None)


def test_what_goes_wrong_stays_on_the_screen(capsys):
    with Board({"one": "figure 1"}, silent=False) as board:
        board("one", "running", "its checkpoint is damaged; the run begins anew")
        board("one", "failed", "no space")
    assert capsys.readouterr().err.splitlines() == [
        "figure 1: its checkpoint is damaged; the run begins anew", "figure 1: failed · no space",
    ]  # fmt: skip


@pytest.mark.parametrize("compiling", [0.0, 20.0, 100.0])
@pytest.mark.parametrize("slower", [1.0, 5.0])
def test_the_first_estimate_is_within_a_factor_of_three(compiling, slower):
    """A run that compiles first and whose steps become `slower` after 2% of it."""

    def moment(share):
        return compiling * (share > 0) + 200 * min(share, 0.02) + 200 * slower * max(0.0, share - 0.02)

    pace, end = Pace(), moment(1.0)
    shares = [k / 500 for k in range(501)]
    for share in shares:
        pace.add(moment(share), share)
        left = pace.left()
        if left is not None and share > 0.02:
            break
    true = end - moment(share)
    assert share < 0.5
    assert true / 3 <= left <= 3 * true


def test_no_estimate_without_an_end():
    pace = Pace()
    for second in range(100):
        pace.add(second, second / np.inf)
    assert pace.left() is None


def test_a_flow_tells_how_far_it_is(capsys):
    p = steppe.Problem(lambda w, x: x @ w, jnp.ones(3), jnp.eye(3), jnp.zeros(3), steppe.losses.mse)
    with Board({"mine": "mine"}, silent=False) as board:
        steppe.critical_rate(p, losses=[0.01], progress=partial(board, "mine", "running"))
    assert capsys.readouterr().err.startswith("mine: running · epoch 1 · loss ")
