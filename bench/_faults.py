"""Random faults in a sweep on a cluster of this machine, each for real, in processes of their own.

    python -m bench._faults --runs 200 --faults 50           a fault every second
    python -m bench._faults --runs 2000 --every 4            a soak: faults until all runs are there

A supervisor starts again what was killed, as systemd or a batch system would. At the end every file of every run has
the bytes of a sweep that nobody disturbed.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steppe.store import Computed, Store, address

_NAME = __spec__.name if __spec__ else __name__
DATA = ("curves.parquet", "params.safetensors", "result.json")


@dataclass(frozen=True)
class Task:
    """A run of some length that saves checkpoints: a chaotic sequence, in which a lost step would change all digits."""

    seed: int
    steps: int = 20
    pause: float = 0.02

    def compute(self, checkpoint: Any, progress: Any = None) -> Computed:
        saved = checkpoint.load()
        x = [0.1 + self.seed / 1e6] if saved is None else list(saved["x"])
        while len(x) < self.steps:
            time.sleep(self.pause)
            x.append(3.99 * x[-1] * (1 - x[-1]))
            if checkpoint.due():
                checkpoint.save({"x": np.array(x)})
        return Computed({"step": np.arange(self.steps), "x": np.array(x)}, {"x": np.array(x)}, {"last": x[-1]})


def tasks(runs: int, pause: float) -> list[Task]:
    return [Task(seed, pause=pause) for seed in range(runs)]


def client(root: str, address_: str, runs: int, pause: float) -> int:
    """The sweep, as `steppe sweep` runs it; 0 when all its runs are there."""
    from steppe.sweep import Dask, Pending, drive

    store = Store(root, checkpoint_seconds=0.1)
    pending = Pending(tasks(runs, pause), store)
    drive(lambda: Dask(address_, store, watch=lambda id, state, news: None, patience=30.0), pending, to_the_end=True)
    return 1 if pending.failures else 0


@dataclass
class Cluster:
    """The processes of a sweep, each started again when it has ended. The last worker is another host, if `host`."""

    root: Path
    runs: int
    pause: float
    workers: int = 2
    host: "Host | None" = None
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    every: list[subprocess.Popen[bytes]] = field(default_factory=list)
    finished: bool = False
    started: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]

    @property
    def names(self) -> list[str]:
        return [*(f"worker {k}" for k in range(self.workers)), *(["worker far"] if self.host else [])]

    def watch(self) -> None:
        """Start what is not running."""
        for name in ("scheduler", *self.names, "client", "twin"):
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                continue
            if name == "client" and process is not None and process.returncode == 0:
                self.finished = True
            elif name != "twin":
                self.start(name)

    def start(self, name: str) -> None:
        self.started[name] += 1
        module = [sys.executable, "-m"]
        here = f"tcp://127.0.0.1:{self.port}"
        if name == "scheduler":
            command = [*module, "distributed.cli.dask_scheduler", "--host", "0.0.0.0", "--port", str(self.port)]
            command += ["--no-dashboard"]
        elif name.startswith("worker"):
            far = name == "worker far" and self.host is not None
            place = f"tcp://{self.host.gateway}:{self.port}" if far and self.host else here
            command = [*module, "distributed.cli.dask_worker", place, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            command += ["--death-timeout", "20", "--local-directory", str(self.root / "scratch")]
            command = [*self.host.inside, *command] if far and self.host else command
        else:
            command = [*module, _NAME, "--client", here]
            command += ["--root", str(self.root / "runs"), "--runs", str(self.runs), "--pause", str(self.pause)]
        with (self.root / f"{name.replace(' ', '-')}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)
            self.every.append(self.processes[name])

    def children(self, name: str) -> list[int]:
        """The processes that a worker computes in."""
        pid, found = self.processes[name].pid, []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError, ValueError):
                if int(path.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(path.parent.name))
        return found

    def close(self) -> None:
        for process in self.every:
            process.kill()
        for process in self.every:
            process.wait()


class Host:
    """Another host: a network namespace with a cable that can be cut. It needs root and `ip`."""

    gateway, far = "10.77.13.1", "10.77.13.2"

    def __init__(self) -> None:
        self.name = f"steppe{os.getpid() % 10000}"
        self.inside = ["ip", "netns", "exec", self.name]

    def __enter__(self) -> "Host":
        here, there = self.cable, f"{self.name}b"
        for line in (
            f"ip netns add {self.name}",
            f"ip link add {here} type veth peer name {there}",
            f"ip link set {there} netns {self.name}",
            f"ip addr add {self.gateway}/24 dev {here}",
            f"ip link set {here} up",
            f"ip netns exec {self.name} ip addr add {self.far}/24 dev {there}",
            f"ip netns exec {self.name} ip link set {there} up",
            f"ip netns exec {self.name} ip link set lo up",
        ):
            subprocess.run(line.split(), check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        for line in (f"ip link del {self.cable}", f"ip netns del {self.name}"):
            subprocess.run(line.split(), check=False, capture_output=True)

    @property
    def cable(self) -> str:
        return f"{self.name}a"

    @contextlib.contextmanager
    def cut(self) -> Iterator[None]:
        subprocess.run(["ip", "link", "set", self.cable, "down"], check=True)
        try:
            yield
        finally:
            subprocess.run(["ip", "link", "set", self.cable, "up"], check=True)


def _kill(cluster: Cluster, name: str) -> None:
    cluster.processes[name].kill()


def _kill_runner(cluster: Cluster, rng: random.Random) -> None:
    for pid in cluster.children(rng.choice(cluster.names)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _freeze(cluster: Cluster, rng: random.Random) -> None:
    """A worker that stands still for a while, as under a swapping or suspended machine."""
    process = cluster.processes[rng.choice(cluster.names)]
    process.send_signal(signal.SIGSTOP)
    time.sleep(rng.uniform(0.5, 3))
    process.send_signal(signal.SIGCONT)


def _cut(cluster: Cluster, rng: random.Random) -> None:
    assert cluster.host is not None
    with cluster.host.cut():
        time.sleep(rng.uniform(0.5, 5))


def _full(cluster: Cluster, rng: random.Random) -> None:
    """A store that cannot be written for a while."""
    work = cluster.root / "runs" / ".work"
    if subprocess.run(["chattr", "+i", str(work)], check=False, capture_output=True).returncode == 0:
        time.sleep(rng.uniform(0.5, 2))
        subprocess.run(["chattr", "-i", str(work)], check=True)


FAULTS: dict[str, Callable[[Cluster, random.Random], None]] = {
    "a worker killed": lambda cluster, rng: _kill(cluster, rng.choice(cluster.names)),
    "a run's process killed": _kill_runner,
    "the client killed": lambda cluster, rng: _kill(cluster, "client"),
    "the scheduler killed": lambda cluster, rng: _kill(cluster, "scheduler"),
    "a worker frozen": _freeze,
    "a second client": lambda cluster, rng: cluster.start("twin"),
    "the store read-only": _full,
    "a host cut off": _cut,
}


@dataclass(frozen=True)
class Account:
    """What happened, and whether the runs are those of an undisturbed sweep."""

    runs: int
    faults: dict[str, int]
    starts: dict[str, int]
    seconds: float
    same: int
    lost: int
    different: int


def disturbed(
    runs: int, *, faults: int | None, every: float, pause: float = 0.02, seed: int = 0, root: Path,
    kinds: Sequence[str] = tuple(FAULTS), seconds: float = 3600.0,
) -> Account:  # fmt: skip
    """A sweep on a cluster with faults (so many, or until it is done), and its comparison with an undisturbed one."""
    rng, happened, began = random.Random(seed), Counter[str](), time.monotonic()
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(Host()) if "a host cut off" in kinds else None
        cluster = Cluster(root, runs, pause, host=host)
        stack.callback(cluster.close)
        cluster.watch()
        store, next_fault = Store(root / "runs"), None
        while not cluster.finished and time.monotonic() - began < seconds:
            time.sleep(0.1)
            cluster.watch()
            if next_fault is None and store.ids():
                next_fault = time.monotonic()
            if (
                next_fault is not None
                and time.monotonic() > next_fault
                and (faults is None or happened.total() < faults)
            ):
                kind = rng.choice(list(kinds))
                FAULTS[kind](cluster, rng)
                happened[kind] += 1
                next_fault = time.monotonic() + rng.expovariate(1 / every)
        starts = dict(cluster.started)
    wanted, ids = tasks(runs, pause), set(store.ids())
    lost = [one for one in wanted if address(one) not in ids]
    different = [one for one in wanted if one not in lost and not _same(store, one, root / "undisturbed")]
    took = round(time.monotonic() - began, 1)
    whole = runs - len(lost) - len(different)
    return Account(runs, dict(happened), starts, took, whole, len(lost), len(different))


def _same(store: Store, task: Task, root: Path) -> bool:
    """Whether a run has the bytes that it has when it is computed here, without a pause."""
    other = Store(root)
    entry = other.compute(task, Task(task.seed, task.steps, 0.0).compute)
    folder = store.open(address(task)).folder
    return all((folder / name).read_bytes() == (entry.folder / name).read_bytes() for name in DATA)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--faults", type=int, default=None)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", default=None)
    parser.add_argument("--root", default=None)
    asked = parser.parse_args()
    if asked.client is not None:
        # Imported by its name: other processes know no class of a __main__.
        sweep: Callable[..., int] = importlib.import_module(_NAME).client
        return sweep(asked.root, asked.client, asked.runs, asked.pause)
    can_cut = os.geteuid() == 0 and shutil.which("ip") is not None
    kinds = [kind for kind in FAULTS if can_cut or kind != "a host cut off"]
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))  # ends what it has started
    with tempfile.TemporaryDirectory(prefix="steppe-faults-") as root:
        told = disturbed(
            asked.runs, faults=asked.faults, every=asked.every, pause=asked.pause, seed=asked.seed, root=Path(root),
            kinds=kinds,
        )  # fmt: skip
    print(json.dumps(asdict(told), indent=1))
    return 0 if told.lost == told.different == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
