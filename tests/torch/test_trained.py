"""A trained network of a package, loaded as a user would: pip install --no-deps silero-vad. Skipped without it."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, eigsh

import steppe

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


class Voice(nn.Module):
    """silero-vad at 16 kHz, as the package writes it down in tinygrad_model.py; one chunk without a past."""

    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, 256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(129, 128, 3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, 128, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(128, 128)
        self.final_conv = nn.Conv1d(128, 1, 1)

    def forward(self, x):
        x = self.stft_conv(functional.pad(x, (0, 64), "reflect").unsqueeze(1))
        x = (x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt()
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = layer(x).relu()
        h, _ = self.lstm_cell(x.squeeze(-1))
        return self.final_conv(h.unsqueeze(-1).relu()).squeeze(-1)


def test_the_sharpness_of_a_speech_detector():
    if (spec := find_spec("silero_vad")) is None:
        pytest.skip("silero-vad is not installed")
    from safetensors.torch import load_file

    model = Voice()
    model.load_state_dict(load_file(Path(spec.origin).parent / "data" / "silero_vad_16k.safetensors"))
    rng = np.random.default_rng(3)
    x = 0.1 * rng.standard_normal((6, 576))
    x[:3] += 0.3 * np.sin(0.06 * np.arange(576))
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor([[1.0]] * 3 + [[0.0]] * 3)
    loss = nn.BCEWithLogitsLoss()
    found = steppe.measures.sharpness(steppe.torch.Problem(model, (x, y), loss))

    model.double()
    params = list(model.parameters())
    slopes = torch.autograd.grad(loss(model(x.double()), y.double()), params, create_graph=True)
    sizes = [p.numel() for p in params]

    def product(v):
        parts = [
            part.view_as(p) for part, p in zip(torch.from_numpy(v.ravel().copy()).split(sizes), params, strict=True)
        ]
        return torch.cat([h.ravel() for h in torch.autograd.grad(slopes, params, parts, retain_graph=True)]).numpy()

    operator = LinearOperator((sum(sizes), sum(sizes)), product, dtype=np.float64)
    truth = eigsh(operator, k=1, which="LA", return_eigenvectors=False)[0]
    assert found.lower * (1 - 1e-5) <= truth <= found.upper * (1 + 1e-5)  # float32
    np.testing.assert_allclose(found.value, truth, rtol=1e-3)
