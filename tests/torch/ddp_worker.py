"""One of two processes that train together with SAM: `python ddp_worker.py RANK FOLDER`."""

import os
import sys
from contextlib import nullcontext
from datetime import timedelta

import torch
from torch.nn.parallel import DistributedDataParallel

from steppe.torch import SAM


def work(rank, folder):
    """Three steps on half of the data, with the first gradient averaged and local; writes the weights of both."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meeting = f"file://{folder}/meeting"
    limit = timedelta(seconds=100)
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2, timeout=limit)
    x, y, start = torch.load(f"{folder}/start.pt")
    mine, results = slice(5 * rank, 5 * rank + 5), {}
    for local in (False, True):
        model = torch.nn.Linear(4, 1, bias=False).double()
        model.weight.data = start.clone()
        ddp = DistributedDataParallel(model)
        sam = SAM(torch.optim.SGD(ddp.parameters(), lr=0.1), 0.3)
        for _ in range(3):
            for after in (sam.first_step, sam.step):
                with ddp.no_sync() if local and after == sam.first_step else nullcontext():
                    (0.5 * ((ddp(x[mine]) - y[mine]) ** 2).mean()).backward()
                after()
            sam.zero_grad()
        results[local] = model.weight.detach()
    torch.save(results, f"{folder}/result-{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
