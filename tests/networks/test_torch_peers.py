"""The networks of conflicting-biases against PyTorch's modules: outputs with copied weights, initial distributions."""

from functools import partial
from itertools import chain

import jax
import numpy as np
import pytest
from scipy.stats import ks_2samp

from steppe.activations import relu, tanh
from steppe.networks import CNN, FCN, ResNet, Transformer, ViT
from steppe.networks._convolutional import apply_batch_norm, init_batch_norm
from steppe.networks._transformer import (
    apply_attention,
    apply_encoder_layer,
    apply_layer_norm,
    init_attention,
    init_encoder_layer,
)

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

RNG = np.random.default_rng(7)
# Both in double precision; sums of at most a few thousand terms, through a few layers.
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def t(a):
    return torch.tensor(np.asarray(a))


def shaken(params):
    """Every parameter away from its special value: γ, β and the biases of attention too."""
    rng = np.random.default_rng(3)
    return jax.tree.map(lambda a: a + 0.3 * rng.normal(size=a.shape), params)


def fill(module, **arrays):
    """Parameters of a module by name; all of them must be given."""
    assert set(arrays) == {name for name, _ in module.named_parameters(recurse=False)}
    for name, a in arrays.items():
        getattr(module, name).data = t(a)
    return module


def fill_linear(module, params):
    return fill(module, weight=params["W"], bias=params["b"])


def fill_norm(module, params):
    return fill(module, weight=params["gamma"], bias=params["beta"])


def fill_attention(module, params):
    fill(module, in_proj_weight=params["inward"]["W"], in_proj_bias=params["inward"]["b"])
    fill_linear(module.out_proj, params["outward"])


def fill_layer(module, params):
    fill_attention(module.self_attn, params["attention"])
    fill_linear(module.linear1, params["widen"])
    fill_linear(module.linear2, params["narrow"])
    for name in ("norm1", "norm2", "norm3"):
        if name in params:
            fill_norm(getattr(module, name), params[name])
    if "cross" in params:
        fill_attention(module.multihead_attn, params["cross"])
    return module


def numbers(tensor):
    return tensor.detach().numpy()


def channels_first(x):
    return t(x).permute(0, 3, 1, 2)


@pytest.mark.parametrize(("activation", "module"), [(relu, nn.ReLU), (tanh, nn.Tanh)], ids=["relu", "tanh"])
def test_fcn(activation, module):
    network = FCN((7, 5), activation=activation)
    params, x = network.init((3, 2), 4, RNG, np.float64), RNG.normal(size=(6, 3, 2))
    layers = [fill_linear(nn.Linear(*p["W"].shape[::-1], dtype=torch.float64), p) for p in params]
    theirs = nn.Sequential(nn.Flatten(), layers[0], module(), layers[1], module(), layers[2])
    np.testing.assert_allclose(jax.jit(network)(params, x), numbers(theirs(t(x))), **CLOSE)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_cnn(batch_norm):
    network = CNN((3, 5), batch_norm=batch_norm)
    params, x = shaken(network.init((8, 9, 2), 4, RNG, np.float64)), RNG.normal(size=(6, 8, 9, 2))
    h = channels_first(x)
    for p in params["convolutions"]:
        h = F.conv2d(h, t(p["W"]), t(p["b"]), padding=1)
        h = F.batch_norm(h, None, None, t(p["gamma"]), t(p["beta"]), training=True) if batch_norm else h
        h = F.max_pool2d(F.relu(h), 2)
    # PyTorch flattens channels first.
    W = t(params["linear"]["W"]).reshape(4, 2, 2, 5).permute(0, 3, 1, 2).reshape(4, -1)
    theirs = F.linear(h.flatten(1), W, t(params["linear"]["b"]))
    np.testing.assert_allclose(jax.jit(network)(params, x), theirs.numpy(), **CLOSE)


def test_resnet():
    network = ResNet((3, 4, 6), blocks=2)
    params, x = shaken(network.init((8, 8, 3), 4, RNG, np.float64)), RNG.normal(size=(5, 8, 8, 3))

    def norm(p, h):
        return F.batch_norm(h, None, None, t(p["gamma"]), t(p["beta"]), training=True)

    def layer(p, h):
        return norm(p, F.conv2d(h, t(p["W"]), padding=1))

    h = F.relu(layer(params["first"], channels_first(x)))
    for block in chain(*params["stages"]):
        skip = h
        if "skip" in block:
            h = F.avg_pool2d(h, 2)
            skip = norm(block["skip"], h)
            skip = F.pad(skip, (0, 0, 0, 0, 0, len(block["second"]["gamma"]) - skip.shape[1]))
        h = F.relu(skip + layer(block["second"], F.relu(layer(block["first"], h))))
    theirs = F.linear(h.mean(dim=(2, 3)), t(params["linear"]["W"]), t(params["linear"]["b"]))
    np.testing.assert_allclose(jax.jit(network)(params, x), theirs.numpy(), **CLOSE)


def test_batch_and_layer_norm():
    params, x = shaken(init_batch_norm(4, np.float64)), RNG.normal(size=(6, 4))
    module = fill_norm(nn.BatchNorm1d(4, dtype=torch.float64, momentum=1.0), params)
    np.testing.assert_allclose(jax.jit(apply_batch_norm)(params, x), numbers(module(t(x))), **CLOSE)
    layer = fill_norm(nn.LayerNorm(4, dtype=torch.float64), params)
    np.testing.assert_allclose(jax.jit(apply_layer_norm)(params, x), numbers(layer(t(x))), **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    params = shaken(init_attention(6, RNG, np.float64))
    q, k = RNG.normal(size=(3, 5, 6)), RNG.normal(size=(3, 5, 6))
    module = nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64)
    fill_attention(module, params)
    mask = ~torch.ones(5, 5, dtype=torch.bool).tril() if causal else None
    theirs, _ = module(t(q), t(k), t(k), attn_mask=mask)
    ours = jax.jit(partial(apply_attention, heads=2, causal=causal))(params, q, k)
    np.testing.assert_allclose(ours, numbers(theirs), **CLOSE)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer(norm_first):
    params, x = shaken(init_encoder_layer(6, 9, RNG, np.float64)), RNG.normal(size=(3, 5, 6))
    module = nn.TransformerEncoderLayer(
        6, 2, 9, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    ours = jax.jit(partial(apply_encoder_layer, heads=2, activation=relu, norm_first=norm_first))(params, x)
    np.testing.assert_allclose(ours, numbers(fill_layer(module, params)(t(x))), **CLOSE)


def test_vit():
    network = ViT(patch=2, dim=6, layers=2, heads=2, hidden=5)
    params, x = shaken(network.init((4, 6, 3), 4, RNG, np.float64)), RNG.normal(size=(3, 4, 6, 3))
    # A patch is a convolution with stride as wide as itself.
    W = t(params["patches"]["W"]).reshape(6, 2, 2, 3).permute(0, 3, 1, 2)
    h = F.conv2d(channels_first(x), W, t(params["patches"]["b"]), stride=2).flatten(2).transpose(1, 2)
    h = torch.cat([t(params["token"]).expand(3, 1, 6), h], dim=1) + t(params["positions"])
    for p in params["layers"]:
        module = nn.TransformerEncoderLayer(
            6, 2, 5, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
        )
        h = fill_layer(module, p)(h)
    h = fill_norm(nn.LayerNorm(6, dtype=torch.float64), params["norm"])(h[:, 0])
    theirs = F.linear(h, t(params["linear"]["W"]), t(params["linear"]["b"]))
    np.testing.assert_allclose(jax.jit(network)(params, x), numbers(theirs), **CLOSE)


def _torch_transformer(network):
    return nn.Transformer(
        network.dim, network.heads, network.encoder_layers, network.decoder_layers, network.hidden,
        dropout=0.0, batch_first=True, dtype=torch.float64,
    )  # fmt: skip


def test_transformer():
    network = Transformer(dim=8, hidden=5, heads=2)
    shapes = {"source": (4,), "shifted": (4,)}
    params = shaken(network.init(shapes, 3, RNG, np.float64))
    x = {name: RNG.integers(0, 4, (3, 4)) for name in shapes}
    module = _torch_transformer(network)
    for half in ("encoder", "decoder"):
        for theirs, p in zip(getattr(module, half).layers, params[half], strict=True):
            fill_layer(theirs, p)
        fill_norm(getattr(module, half).norm, params[f"{half}_norm"])

    def embedded(name):
        positions = np.empty((4, 8))
        for place in range(4):
            for k in range(4):
                angle = place / 10_000 ** (2 * k / 8)
                positions[place, 2 * k : 2 * k + 2] = np.sin(angle), np.cos(angle)
        return t(params["embeddings"][name])[t(x[name])] + t(positions)

    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    h = module(embedded("source"), embedded("shifted"), tgt_mask=mask)
    theirs = F.linear(h, t(params["linear"]["W"]), t(params["linear"]["b"]))
    np.testing.assert_allclose(jax.jit(network)(params, x), numbers(theirs), **CLOSE)


def _pairs():
    """(ours, theirs) arrays drawn by both at the start, by name."""
    torch.manual_seed(0)
    rng = np.random.default_rng(43)
    linear = nn.Linear(784, 200)
    ours = FCN().init((28, 28, 1), 10, rng)[0]
    yield "linear weights", ours["W"], linear.weight
    yield "linear bias", ours["b"], linear.bias
    convolution, ours = nn.Conv2d(32, 32, 3), CNN().init((28, 28, 1), 10, rng)["convolutions"][1]
    yield "convolution", ours["W"], convolution.weight
    yield "convolution bias", ours["b"], convolution.bias
    layer, ours = nn.TransformerEncoderLayer(64, 4, 256), init_encoder_layer(64, 256, rng, np.float32)
    yield "queries, keys and values", ours["attention"]["inward"]["W"], layer.self_attn.in_proj_weight
    yield "their bias", ours["attention"]["inward"]["b"], layer.self_attn.in_proj_bias
    yield "attention's output", ours["attention"]["outward"]["W"], layer.self_attn.out_proj.weight
    yield "its bias", ours["attention"]["outward"]["b"], layer.self_attn.out_proj.bias
    yield "widen", ours["widen"]["W"], layer.linear1.weight
    yield "narrow", ours["narrow"]["W"], layer.linear2.weight
    yield "norm", ours["norm1"]["gamma"], layer.norm1.weight
    network = Transformer()
    whole, ours = _torch_transformer(network), network.init({"source": (10,), "shifted": (10,)}, 9, rng)
    yield (
        "transformer: output",
        ours["encoder"][0]["attention"]["outward"]["W"],
        whole.encoder.layers[0].self_attn.out_proj.weight,
    )
    yield "transformer: widen", ours["decoder"][1]["widen"]["W"], whole.decoder.layers[1].linear1.weight
    yield "transformer: bias", ours["decoder"][1]["widen"]["b"], whole.decoder.layers[1].linear1.bias
    yield (
        "transformer: cross",
        ours["decoder"][0]["cross"]["inward"]["W"],
        whole.decoder.layers[0].multihead_attn.in_proj_weight,
    )
    yield "embedding", ours["embeddings"]["source"], nn.Embedding(10, 64).weight


PAIRS = list(_pairs())


@pytest.mark.parametrize(("ours", "theirs"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_initial_distributions(ours, theirs):
    theirs = numbers(theirs)
    assert ours.shape == theirs.shape
    if np.ptp(theirs) == 0:
        np.testing.assert_array_equal(ours, theirs)
        return
    # The same law: a test that a true one fails once in 10,000 draws.
    assert ks_2samp(ours.ravel(), theirs.ravel()).pvalue > 1e-4


@pytest.mark.parametrize("index", [0, 2, 4, 11, 12, 14], ids=[PAIRS[k][0] for k in (0, 2, 4, 11, 12, 14)])
def test_bounds_and_variances_of_uniform_weights(index):
    """Both lie within the same bound and come close to it, and have a variance of a third of its square."""
    _, ours, theirs = PAIRS[index]
    fan_in, fan_out = int(np.prod(ours.shape[1:])), ours.shape[0]
    bound = (6 / (fan_in + fan_out)) ** 0.5 if index in (4, 11, 12, 14) else fan_in**-0.5
    for a in (ours, numbers(theirs)):
        # The largest of N uniform values is short of the bound by 1/N of it; ten times that in case of bad luck.
        assert bound * (1 - 10 / a.size) < np.abs(a).max() <= bound * (1 + 1e-6)
        # The variance of u² for uniform u is 4/45 bound⁴; four standard errors.
        assert abs(np.mean(a.astype(float) ** 2) - bound**2 / 3) < 4 * bound**2 * (4 / 45 / a.size) ** 0.5


def test_counts():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    def ours(network, inputs, outputs):
        return sum(a.size for a in jax.tree.leaves(network.init(inputs, outputs, np.random.default_rng(0))))

    whole = count(_torch_transformer(Transformer())) + 2 * count(nn.Embedding(10, 64)) + count(nn.Linear(64, 9))
    assert ours(Transformer(), {"source": (10,), "shifted": (10,)}, 9) == whole
    convolutions = nn.Sequential(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.Conv2d(32, 32, 3), nn.BatchNorm2d(32))
    assert ours(CNN(batch_norm=True), (28, 28, 1), 10) == count(convolutions) + count(nn.Linear(1568, 10))
