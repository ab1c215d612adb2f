"""Small PyTorch networks of many kinds with data and a loss, in float64 unless a test asks for float32."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def mlp():
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.GELU(), nn.Linear(4, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.Softplus(), nn.AvgPool2d(2),
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(3, 3),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.second, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        h = functional.relu(self.norm1(self.first(x)), inplace=True)
        h = self.norm2(self.second(h))
        h += x
        return functional.relu_(h)


def resnet():
    return nn.Sequential(
        nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2), Block(2), Block(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3),
    )  # fmt: skip


class GPT(nn.Module):
    """Causal attention by the fused kernel, and the output layer tied to the embedding."""

    def __init__(self, symbols=5, width=4, length=6):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.norm, self.inward, self.outward = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("places", torch.arange(length))

    def forward(self, tokens):
        h = self.tokens(tokens) + self.positions(self.places[: tokens.shape[1]])
        b, t, d = h.shape
        q, k, v = (a.view(b, t, 2, d // 2).transpose(1, 2) for a in self.inward(self.norm(h)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.outward(mixed.transpose(1, 2).reshape(b, t, d))
        return self.head(self.last(h)).transpose(1, 2)


class ViT(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.patches, self.token = nn.Conv2d(1, width, 2, stride=2), nn.Parameter(torch.randn(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, 2, 6, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(x), -1, -1), h], 1)
        return self.head(self.encoder(h)[:, 0])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(2, 2, num_layers=2, batch_first=True), nn.Linear(2, 3)

    def forward(self, x):
        return self.head(self.cells(x)[0][:, -1])


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first, self.second, self.reentrant = nn.Linear(3, 5), nn.Linear(5, 3), reentrant

    def forward(self, x):
        def part(h):
            return torch.tanh(self.first(h))

        return self.second(checkpoint(part, x, use_reentrant=self.reentrant))


def _vectors(n):
    return torch.randn(n, 3), torch.randint(0, 3, (n,))


def _images(n):
    return torch.randn(n, 1, 6, 6), torch.randint(0, 3, (n,))


def _tokens(n):
    text = torch.randint(0, 5, (n, 7))
    return text[:, :-1], text[:, 1:]


def _series(n):
    return torch.randn(n, 4, 2), torch.randint(0, 3, (n,))


# name → (model, data of n examples)
NETS = {
    "mlp": (mlp, _vectors),
    "cnn": (cnn, _images),
    "resnet": (resnet, _images),
    "vit": (ViT, _images),
    "gpt": (GPT, _tokens),
    "lstm": (Recurrent, _series),
    "checkpoint": (lambda: Checkpointed(False), _vectors),
    "reentrant": (lambda: Checkpointed(True), _vectors),
}


def net(name, *, n=10, dtype=torch.float64, training=True, seed=0):
    """(model, (x, y)) with random parameters and running statistics."""
    make, data = NETS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model, (x, y) = make().to(dtype), data(n)
        for b in model.buffers():
            if b.is_floating_point():
                b.add_(0.5 * torch.rand_like(b))
    return model.train(training), (x.to(dtype) if x.is_floating_point() else x, y)


def dense_hessian(model, data, loss):
    """∇²L by torch.func on a plain call of the model: slow, obvious, and without anything of steppe."""
    x, y = data
    names, start = zip(*model.named_parameters(), strict=True)
    sizes, shapes = [p.numel() for p in start], [p.shape for p in start]

    def value(w):
        params = {n: p.view(s) for n, p, s in zip(names, w.split(sizes), shapes, strict=True)}
        buffers = {n: b.clone() for n, b in model.named_buffers()}
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return loss(torch.func.functional_call(model, (params, buffers), (x,)), y)

    w = torch.cat([p.detach().reshape(-1) for p in start])
    return torch.autograd.functional.hessian(value, w).numpy()
