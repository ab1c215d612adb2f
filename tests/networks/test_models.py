"""The networks of conflicting-biases: parameter counts by hand, curvature against the dense oracle, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases.problems import architecture, noise_images

import steppe
from steppe import curvature, data, losses, measures
from steppe.activations import relu, tanh
from steppe.check import ArgumentError
from steppe.networks import CNN, FCN, ResNet, Transformer, ViT, build, kernel, mup, vit_cifar, vit_mnist
from steppe.networks._transformer import apply_decoder_layer, init_decoder_layer

MNIST, CIFAR, SEQUENCES = (28, 28, 1), (32, 32, 3), {"source": (10,), "shifted": (10,)}


def count(network, inputs, outputs=10):
    return sum(a.size for a in jax.tree.leaves(network.init(inputs, outputs, np.random.default_rng(0))))


def fcn(inputs, width, depth, outputs=10):
    """Written out: first layer, hidden layers, last layer."""
    return (inputs + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * outputs


@pytest.mark.parametrize(("width", "depth"), [(200, 2), (400, 2), (600, 2), (2000, 2), (200, 4), (200, 6), (600, 6)])
@pytest.mark.parametrize("inputs", [MNIST, CIFAR], ids=["mnist", "cifar"])
def test_parameters_of_fcns(inputs, width, depth):
    assert count(FCN((width,) * depth), inputs) == fcn(int(np.prod(inputs)), width, depth)
    without = fcn(int(np.prod(inputs)), width, depth) - depth * width - 10
    assert count(FCN((width,) * depth, bias=False, parameterisation=mup), inputs) == without


# Attention 4d² + 4d, two norms 4d, network 2dh + h + d.
def encoder(d, h):
    return 4 * d * d + 4 * d + 4 * d + 2 * d * h + h + d


@pytest.mark.parametrize(
    ("network", "inputs", "outputs", "expected"),
    [
        (FCN(), MNIST, 10, 199_210),  # 784·200 + 200 + 200·200 + 200 + 200·10 + 10
        (CNN(), MNIST, 10, (9 + 1) * 32 + (9 * 32 + 1) * 32 + (7 * 7 * 32 + 1) * 10),
        (CNN(), CIFAR, 10, (27 + 1) * 32 + (9 * 32 + 1) * 32 + (8 * 8 * 32 + 1) * 10),
        (CNN(batch_norm=True), CIFAR, 10, (27 + 1) * 32 + (9 * 32 + 1) * 32 + (8 * 8 * 32 + 1) * 10 + 4 * 32),
        # He et al. print 0.27M: 269,722 with parameter-free skips; the paper's two normalised skips add 2·(16 + 32).
        (ResNet(), CIFAR, 10, 269_722 + 96),
        (vit_mnist, MNIST, 10, 49 * 64 + 64 + 64 + 17 * 64 + 4 * encoder(64, 256) + 2 * 64 + 650),
        (vit_cifar, CIFAR, 10, 48 * 128 + 128 + 128 + 65 * 128 + 6 * encoder(128, 512) + 2 * 128 + 1290),
        # Embeddings of 10 symbols twice; a decoder layer has one attention and one norm more; norms at both ends.
        (
            Transformer(), SEQUENCES, 9,
            2 * 640 + 4 * encoder(64, 128) + 2 * (4 * 64 * 64 + 4 * 64 + 2 * 64) + 4 * 64 + 64 * 9 + 9,
        ),
    ],
)  # fmt: skip
def test_parameters_by_hand(network, inputs, outputs, expected):
    assert count(network, inputs, outputs) == expected


def _decoder():
    """One decoder layer: causal attention, attention to a memory, a network on each token, three norms."""
    rng = np.random.default_rng(0)
    params = init_decoder_layer(4, 3, rng, np.float64)
    x = {"h": rng.normal(size=(2, 3, 4)), "memory": rng.normal(size=(2, 3, 4))}

    def predict(params, x):
        return apply_decoder_layer(params, x["h"], x["memory"], heads=2, activation=tanh)

    return steppe.Problem(predict, params, x, rng.normal(size=(2, 3, 4)), losses.half_mse)


def _small(name):
    """A small problem in double precision, parameters that are nothing special, and a direction of length 1."""
    rng = np.random.default_rng(1)
    problem = _decoder() if name == "decoder" else architecture(name).train
    v = rng.normal(size=problem.w0.size)
    return problem, problem.w0 + 0.3 * rng.normal(size=v.size), v / np.linalg.norm(v)


# Five points h apart: truncation h⁴ times a sixth derivative, rounding 1e-16 / h².
H, SECOND = 1e-3, np.array([-1, 16, -30, 16, -1]) / 12


def _points(w, v):
    return np.asarray(w)[None] + H * np.arange(-2, 3)[:, None] * v[None]


@pytest.mark.parametrize("name", ["fcn-kernel", "resnet", "vit", "decoder"])
def test_products_are_second_differences_of_the_loss(name):
    """Those of a CNN with its largest pixels: below."""
    problem, w, v = _small(name)

    @jax.jit
    def along(points):
        """The loss and its second derivative along v, at each point."""
        both = jax.value_and_grad(problem.loss)
        (values, _), (_, products) = jax.lax.map(lambda w: jax.jvp(both, (w,), (jnp.asarray(v),)), points)
        return values, products @ v

    values, bends = map(np.asarray, along(_points(w, v)))
    assert bends[2] == pytest.approx(values @ SECOND / H**2, rel=1e-7, abs=1e-9)
    assert abs(bends[2]) > 1e-3


@pytest.mark.parametrize("name", ["fcn", "cnn-bn"])
def test_operators_agree_with_the_dense_oracle(name):
    problem, w, v = _small(name)
    product = curvature.hessian(problem, w)(v)
    dense, values = jax.tree.map(
        np.asarray,
        jax.jit(lambda w, points: (jax.hessian(problem.loss)(w), jax.lax.map(problem.loss, points)))(w, _points(w, v)),
    )
    scale = np.linalg.norm(dense, 2)
    # Sums of a few hundred terms in double precision.
    np.testing.assert_allclose(dense, dense.T, atol=1e-12 * scale)
    np.testing.assert_allclose(product, dense @ v, atol=1e-12 * scale)
    assert v @ dense @ v == pytest.approx(values @ SECOND / H**2, rel=1e-7, abs=1e-9)
    assert abs(v @ dense @ v) > 1e-3


def test_batch_statistics_couple_the_examples_and_those_of_training_hold_after_it():
    """On its own training inputs the trained network predicts what it predicts while training; alone it does not."""
    network = CNN((2,), batch_norm=True)
    dataset = noise_images()
    train, test = build(network, dataset, losses.cross_entropy, dtype=np.float64)
    trained, frozen = network.after_training(dataset.x), measures.Frozen().problem(train, train.w0)

    @jax.jit
    def predictions(w):
        params, one = train.unravel(w), test.x[:1]
        in_training = (train.predictions(w), trained(params, train.x), frozen.predictions(w))
        return in_training, (test.predictions(w)[:1], trained(params, one), network(params, one))

    (while_training, after, held), (together, alone, by_itself) = jax.tree.map(np.asarray, predictions(train.w0))
    np.testing.assert_allclose(after, while_training, rtol=1e-12)
    # An example's prediction is now its own: the same with and without the others.
    np.testing.assert_allclose(alone, together, rtol=1e-12)
    assert np.abs(by_itself - alone).max() > 0.01
    np.testing.assert_allclose(held, while_training, rtol=1e-12)


def test_a_cut_and_a_causal_mask():
    """A decoder's output does not depend on what comes later, and depends on what came before and on all the source."""
    network = Transformer(dim=4, hidden=4, encoder_layers=1, decoder_layers=1, heads=2)
    x = data.reversal(1, length=4, symbols=3).x
    params = network.init({"source": (4,), "shifted": (4,)}, 3, np.random.default_rng(0), np.float64)
    apply = jax.jit(network)

    def other_symbol(name, place):
        changed = np.array(x[name])
        changed[0, place] = changed[0, place] % 3 + 1
        return np.asarray(apply(params, x | {name: changed}))

    before, later = np.asarray(apply(params, x)), other_symbol("shifted", 2)
    np.testing.assert_array_equal(before[0, :2], later[0, :2])
    assert (np.abs(before[0, 2:] - later[0, 2:]).max(axis=1) > 1e-6).all()
    assert (np.abs(before - other_symbol("source", 3))[0].max(axis=1) > 1e-6).all()


def test_seed_and_scale():
    dataset = data.digits(20, test=5)
    one, again, other, five = (
        build(FCN((4,)), dataset, losses.half_mse, seed=seed, scale=scale).train.w0
        for seed, scale in ((43, 1.0), (43, 1.0), (44, 1.0), (43, 5.0))
    )
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(np.float32(5) * np.asarray(one), five)
    assert one.dtype == np.float32


def test_equal_descriptions_share_compiled_code():
    assert FCN([200, 200]) == FCN()
    assert hash(CNN((32, 32))) == hash(CNN())
    dataset = data.digits(20, test=5)
    first, second = (build(FCN((4,)), dataset, losses.half_mse, seed=seed).train for seed in (1, 2))
    assert jax.tree.structure(first) == jax.tree.structure(second)


@pytest.mark.parametrize("activation", [relu, tanh], ids=str)
def test_pooling_and_activation(activation):
    """Max pooling of images with an odd side, written out."""
    x = np.random.default_rng(0).normal(size=(2, 5, 4, 1))
    network = CNN((1,), activation=activation)
    params = network.init((5, 4, 1), 1, np.random.default_rng(0), np.float64)
    params["convolutions"][0] = {"W": np.pad([[[[1.0]]]], [(0, 0), (0, 0), (1, 1), (1, 1)]), "b": np.zeros(1)}
    params["linear"] = {"W": np.array([[1.0, 10.0, 100.0, 1000.0]]), "b": np.zeros(1)}
    windows = [[image[r : r + 2, c : c + 2, 0].max() for r in (0, 2) for c in (0, 2)] for image in x]
    expected = np.asarray(activation(jnp.asarray(windows))) @ params["linear"]["W"][0]
    np.testing.assert_allclose(jax.jit(network)(params, x)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FCN((0,)), "widths must be a whole number ≥ 1"),
        (lambda: FCN(200), r"widths=\(200, 200\)"),
        (lambda: FCN((5,), "tanh"), "activation must be"),
        (lambda: CNN(parameterisation="mup"), "parameterisation must be"),
        (lambda: ViT(hidden=0), "hidden must be a whole number ≥ 1"),
        (lambda: build(FCN(), data.reversal(10), losses.cross_entropy), "Take a Transformer"),
        (lambda: build(FCN(), data.digits(10), losses.half_mse, seed=-1), "seed must be"),
        (lambda: CNN(batch_norm=True, parameterisation=kernel), "batch_norm=False"),
        (lambda: ResNet((16, 16)), "rising from stage to stage"),
        (lambda: ViT(dim=6), "multiple of the 4 heads"),
        (lambda: count(CNN(), (784,)), "take an FCN"),
        (lambda: count(CNN(), (3, 3, 1)), "at least 4 × 4 pixels"),
        (lambda: count(vit_mnist, CIFAR), "a divisor of 32 and 32"),
        (lambda: count(Transformer(), MNIST), "steppe.data.reversal"),
        (lambda: build(FCN(), data.digits(10), losses.half_mse, scale=0.0), "scale must be"),
        (lambda: build(FCN(), data.digits(10), losses.logistic()), "cross_entropy"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_user_may_build_the_problem_himself():
    network = FCN((3,))
    params = network.init((2,), 1, np.random.default_rng(0))
    problem = steppe.Problem(network, params, np.ones((4, 2)), np.zeros((4, 1)), losses.mse)
    assert problem.w0.size == 3 * 3 + 4
