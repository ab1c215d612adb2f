"""Adam trains at the edge of stability
====================================

Adam trains at the edge of stability: its preconditioned sharpness rises to 38/lr and stays there.

Two lines of `steppe.torch.Monitor` watch a training loop of PyTorch. Draws what they saw, to the path in the first
argument or to build/.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import mse_loss

import steppe.torch

torch.manual_seed(0)
x = torch.linspace(-1, 1, 20)[:, None]
y = torch.sin(4 * x)
model = torch.nn.Sequential(torch.nn.Linear(1, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

monitor = steppe.torch.Monitor(model, optimizer, (x, y), mse_loss, every=20)
for _ in range(1500):
    optimizer.zero_grad()
    mse_loss(model(x), y).backward()
    optimizer.step()

path = Path(sys.argv[1] if len(sys.argv) > 1 else "build/edge_of_adam.png")
path.parent.mkdir(parents=True, exist_ok=True)
monitor.draw(path)
print(monitor, "\nwrote", path)

seen = {name: np.array(column) for name, column in monitor.table().items()}
late = seen["step"] > 1000
assert np.allclose(seen["threshold"], 38 / 2e-3)
# At the edge it is thrown back whenever it crosses: within a tenth of the threshold, on both sides of 97%.
ratio = seen["preconditioned"][late] / seen["threshold"][late]
assert 0.9 < ratio.min() < 0.97 < ratio.max() < 1.1
assert seen["preconditioned"][seen["step"] == 201] < 0.3 * 38 / 2e-3  # and it came from far below
