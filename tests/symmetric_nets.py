"""The networks that people have, small: CNN with BatchNorm, ResNet-20, ViT, GPT, Llama, as functions of JAX."""

import jax
import jax.numpy as jnp
import numpy as np

import steppe

EPS = 1e-5


def conv(x, kernel, stride=1):
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(p, h, training):
    if training:
        mean, var = h.mean((0, 1, 2)), h.var((0, 1, 2))
    else:
        mean, var = jnp.linspace(-1.0, 1.5, h.shape[-1]), jnp.linspace(0.5, 2.0, h.shape[-1])
    return (h - mean) / jnp.sqrt(var + EPS) * p["g"] + p["b"]


def layer_norm(p, h):
    h = h - h.mean(-1, keepdims=True)
    return h * jax.lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + EPS) * p["g"] + p["b"]


def rms_norm(p, h):
    return h * jax.lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + EPS) * p["g"]


def cnn_bn(training):
    def predict(p, x):
        h = jax.nn.relu(batch_norm(p["norm1"], conv(x, p["conv1"]), training))
        h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = jax.nn.relu(batch_norm(p["norm2"], conv(h, p["conv2"]), training))
        return h.reshape(len(x), -1) @ p["head"] + p["bias"]

    norm1, norm2 = ({"g": (c,), "b": (c,)} for c in (2, 4))
    shapes = {"conv1": (3, 3, 1, 2), "norm1": norm1, "conv2": (3, 3, 2, 4), "norm2": norm2}
    return predict, shapes | {"head": (16, 3), "bias": (3,)}, (4, 4, 1)


def resnet(training, blocks=1, widths=(2, 4)):
    """ResNet-20 has three blocks in each of three stages."""

    def predict(p, x):
        h = jax.nn.relu(batch_norm(p["stem"]["norm"], conv(x, p["stem"]["conv"]), training))
        for s in range(len(widths)):
            for k in range(blocks):
                q, stride = p[f"{s}.{k}"], 2 if s and not k else 1
                f = jax.nn.relu(batch_norm(q["norm1"], conv(h, q["conv1"], stride), training))
                f = batch_norm(q["norm2"], conv(f, q["conv2"]), training)
                skip = batch_norm(q["norm"], conv(h, q["short"], stride), training) if "short" in q else h
                h = jax.nn.relu(f + skip)
        return h.mean((1, 2)) @ p["head"] + p["bias"]

    def norm(c):
        return {"g": (c,), "b": (c,)}

    shapes = {"stem": {"conv": (3, 3, 1, widths[0]), "norm": norm(widths[0])}}
    before = widths[0]
    for s, c in enumerate(widths):
        for k in range(blocks):
            q = {"conv1": (3, 3, before, c), "norm1": norm(c), "conv2": (3, 3, c, c), "norm2": norm(c)}
            shapes[f"{s}.{k}"] = q | ({"short": (1, 1, before, c), "norm": norm(c)} if s and not k else {})
            before = c
    return predict, shapes | {"head": (before, 3), "bias": (3,)}, (4, 4, 1)


def attention(p, h, heads, causal):
    """Packed queries, keys and values."""
    t, d = h.shape[1:]
    q, k, v = jnp.split(h @ p["qkv"] + p["qkv_b"], 3, -1)
    q, k, v = (a.reshape(len(h), t, heads, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(d / heads)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    mixed = jax.nn.softmax(scores) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(len(h), t, d) @ p["out"] + p["out_b"]


def _block(d, hidden):
    norm = {"g": (d,), "b": (d,)}
    return {"norm1": norm, "qkv": (d, 3 * d), "qkv_b": (3 * d,), "out": (d, d), "out_b": (d,), "norm2": norm,
            "up": (d, hidden), "up_b": (hidden,), "down": (hidden, d), "down_b": (d,)}  # fmt: skip


def _transformed(p, h, heads, causal):
    for name in sorted(k for k in p if k.startswith("block")):
        q = p[name]
        h = h + attention(q, layer_norm(q["norm1"], h), heads, causal)
        h = h + jax.nn.gelu(layer_norm(q["norm2"], h) @ q["up"] + q["up_b"]) @ q["down"] + q["down_b"]
    return layer_norm(p["last"], h)


def vit(d=4, heads=2):
    def predict(p, x):
        patches = x.reshape(len(x), 2, 2, 2, 2).transpose(0, 1, 3, 2, 4).reshape(len(x), 4, 4)
        h = patches @ p["patch"] + p["patch_b"]
        h = jnp.concatenate([jnp.broadcast_to(p["class"], (len(x), 1, d)), h], 1) + p["places"]
        return _transformed(p, h, heads, False)[:, 0] @ p["head"] + p["head_b"]

    shapes = {"patch": (4, d), "patch_b": (d,), "class": (1, 1, d), "places": (5, d), "head": (d, 3), "head_b": (3,)}
    return predict, shapes | {"block0": _block(d, 8), "last": {"g": (d,), "b": (d,)}}, (4, 4)


def gpt(d=4, heads=2, symbols=5, length=4, tied=False):
    def predict(p, x):
        h = p["tokens"][x] + p["places"][: x.shape[1]]
        h = _transformed(p, h, heads, True)
        return (h @ (p["tokens"].T if tied else p["head"]))[:, -1]

    shapes = {"tokens": (symbols, d), "places": (length, d), "block0": _block(d, 8),
              "last": {"g": (d,), "b": (d,)}}  # fmt: skip
    return predict, shapes if tied else shapes | {"head": (d, symbols)}, (length,)


def llama(d=8, heads=4, shared=2, symbols=5, length=4, hidden=6):
    """Rotary positions, grouped queries, RMSNorm, SwiGLU; the layers in one scan over stacked arrays."""
    size = d // heads

    def rotated(a):
        first, second = jnp.split(a, 2, -1)
        angle = jnp.arange(a.shape[2])[:, None] * 10.0 ** -jnp.arange(size // 2)
        return jnp.concatenate([first * jnp.cos(angle) - second * jnp.sin(angle),
                                second * jnp.cos(angle) + first * jnp.sin(angle)], -1)  # fmt: skip

    def block(h, q):
        n, t = h.shape[:2]
        a = rms_norm(q["norm1"], h)
        Q = rotated((a @ q["q"]).reshape(n, t, heads, size).transpose(0, 2, 1, 3))
        K = rotated((a @ q["k"]).reshape(n, t, shared, size).transpose(0, 2, 1, 3))
        V = (a @ q["v"]).reshape(n, t, shared, size).transpose(0, 2, 1, 3)
        K, V = (jnp.repeat(a, heads // shared, 1) for a in (K, V))
        scores = jnp.einsum("nhid,nhjd->nhij", Q, K) + jnp.triu(jnp.full((t, t), -jnp.inf), 1)
        h = h + jnp.einsum("nhij,nhjd->nihd", jax.nn.softmax(scores), V).reshape(n, t, d) @ q["o"]
        a = rms_norm(q["norm2"], h)
        return h + (jax.nn.silu(a @ q["gate"]) * (a @ q["up"])) @ q["down"], None

    def predict(p, x):
        h, _ = jax.lax.scan(block, p["tokens"][x], p["blocks"])
        return (rms_norm(p["last"], h) @ p["head"])[:, -1]

    blocks = {"norm1": {"g": (d,)}, "q": (d, d), "k": (d, shared * size), "v": (d, shared * size), "o": (d, d),
              "norm2": {"g": (d,)}, "gate": (d, hidden), "up": (d, hidden), "down": (hidden, d)}  # fmt: skip
    stacked = jax.tree.map(lambda s: (2, *s), blocks, is_leaf=lambda s: isinstance(s, tuple))
    return predict, {"tokens": (symbols, d), "blocks": stacked, "last": {"g": (d,)}, "head": (d, symbols)}, (length,)


NETS = {
    "cnn, training": lambda: cnn_bn(True),
    "cnn, evaluation": lambda: cnn_bn(False),
    "resnet, training": lambda: resnet(True),
    "resnet, evaluation": lambda: resnet(False),
    "vit": vit,
    "gpt": gpt,
    "tied": lambda: gpt(tied=True),
    "llama": llama,
}


def problem(name, seed=0, n=4, dtype=np.float64):
    predict, shapes, inputs = NETS[name]()
    rng = np.random.default_rng(seed)

    def drawn(s):
        fan = s[-2] if len(s) > 1 else 4
        return (rng.normal(size=s) / np.sqrt(fan) + (len(s) == 1)).astype(dtype)

    params = jax.tree.map(drawn, shapes, is_leaf=lambda s: isinstance(s, tuple))
    words = len(inputs) == 1
    every = np.arange(n * 4).reshape(n, 4) % 5  # each word of the five
    x = every if words else rng.normal(size=(n, *inputs)).astype(dtype)
    return steppe.Problem(predict, params, x, rng.integers(0, 3, n), steppe.losses.cross_entropy)
