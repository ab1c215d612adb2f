"""Real data: known facts, statistics by another route, targets for each loss. Tests of missing files are skipped."""

import gzip
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from steppe import data, losses
from steppe.check import ArgumentError
from steppe.data import overall, per_channel, per_feature
from steppe.data._dataset import random_split
from steppe.data._files import content, status_of
from steppe.data._importing import import_folder
from steppe.data._registry import CIFAR10, HOUSING, MNIST


def there(data_set, *names):
    files = [f for f in data_set.files if not names or f.name in names]
    return all(status_of(data_set, file).state != "missing" for file in files)


needs_mnist = pytest.mark.skipif(not there(MNIST), reason="MNIST is not here: steppe data download mnist")
needs_cifar = pytest.mark.skipif(
    not there(CIFAR10, "data_batch_1.bin", "test_batch.bin"),
    reason="CIFAR-10 is not here: steppe data download cifar10",
)
needs_housing = pytest.mark.skipif(not there(HOUSING), reason="not here: steppe data download california_housing")


@needs_mnist
def test_mnist():
    whole = data.mnist()
    assert repr(whole) == "Dataset(MNIST: 60000 + 10000 examples of (28, 28, 1))"
    # Known facts: the first labels, images of each class, and the usual constants 0.1307 and 0.3081.
    assert whole.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(whole.y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert whole.y_test[:5].tolist() == [7, 2, 1, 0, 4]
    black, white = whole.x.min(), whole.x.max()
    assert 1 / (white - black) == pytest.approx(0.3081, abs=5e-5)
    assert -black / (white - black) == pytest.approx(0.1307, abs=5e-5)
    assert whole.x.dtype == np.float32


@needs_mnist
def test_the_first_mnist_images_by_their_own_statistics():
    part = data.mnist(500, test=7)
    assert part.name == "MNIST-500"
    x = np.asarray(part.x, np.float64)
    # Single precision: a mean of 4e5 numbers that were rounded to 6e-8.
    assert x.mean() == pytest.approx(0, abs=1e-6)
    assert x.std() == pytest.approx(1, abs=1e-6)
    each = data.mnist(500, test=7, scaling=per_feature)
    flat = data.mnist(500, test=7).x.reshape(500, -1).astype(np.float64)
    # Scaling of pixels does not care for scaling of images before it; rare pixels lose digits to their mean.
    np.testing.assert_allclose(each.x.reshape(500, -1), StandardScaler().fit_transform(flat), atol=1e-4)
    np.testing.assert_array_equal(part.y, data.mnist(1000).y[:500])
    assert part.x_test.shape == (7, 28, 28, 1)


@needs_cifar
def test_cifar():
    part = data.cifar10(200, test=50)
    assert part.shape == (32, 32, 3)
    # Known: a frog, two trucks, a deer, two cars; a cat and two ships.
    assert part.y[:6].tolist() == [6, 9, 9, 4, 1, 1]
    assert part.y_test[:3].tolist() == [3, 8, 8]
    np.testing.assert_allclose(part.x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(part.x.std(axis=0), 1, atol=1e-5)
    channels = data.cifar10(5000, test=10, scaling=per_channel)
    # The first pixel of the first image is (59, 62, 63); the channels' usual means and deviations over all 50,000.
    usual = (np.array([59, 62, 63]) / 255 - [0.4914, 0.4822, 0.4465]) / [0.2470, 0.2435, 0.2616]
    # Image means scatter by about 0.14 / 0.25: the mean over 5,000 images by 0.56 / √5000; four times that.
    np.testing.assert_allclose(channels.x[0, 0, 0], usual, atol=4 * 0.56 / 5000**0.5)


@needs_cifar
@pytest.mark.skipif(there(CIFAR10), reason="all batches are here")
def test_batches_that_are_not_there_are_asked_for_by_name():
    with pytest.raises(data.MissingDataError, match=r"data_batch_2\.bin.*steppe data download cifar10"):
        data.cifar10(10_001)


@needs_cifar
def test_a_pickled_batch_becomes_the_published_binary_one(tmp_path):
    """The sha256 of the binary version decides."""
    records = np.frombuffer(content(CIFAR10, "test_batch.bin"), np.uint8).reshape(10_000, 3073)
    batch = {b"data": records[:, 1:], b"labels": records[:, 0].tolist()}
    (tmp_path / "test_batch").write_bytes(pickle.dumps(batch, 2))
    import_folder(tmp_path, tmp_path / "data")
    np.testing.assert_array_equal(
        np.fromfile(tmp_path / "data" / "cifar10" / "test_batch.bin", np.uint8), records.ravel()
    )


@needs_housing
def test_a_table_with_a_header_becomes_the_published_one(tmp_path):
    lines = content(HOUSING, "cal_housing.data").decode().splitlines()
    short = [",".join(value.rstrip("0").rstrip(".") for value in line.split(",")) for line in lines]
    (tmp_path / "housing.csv").write_text("\n".join(["longitude,latitude,age,a,b,c,d,income,value", *short]))
    import_folder(tmp_path, tmp_path / "data")
    assert len(data.california_housing(10, folder=tmp_path / "data").x) == 10


@needs_housing
def test_housing():
    """Features as scikit-learn documents them; standardised by its scaler."""
    table = np.loadtxt(content(HOUSING, "cal_housing.data").decode().splitlines(), delimiter=",")
    lon, lat, age, rooms, bedrooms, people, households, income, value = table.T
    raw = np.stack([income, age, rooms / households, bedrooms / households, people, people / households, lat, lon]).T
    # The first row of fetch_california_housing, from its documentation.
    np.testing.assert_allclose(raw[0], [8.3252, 41, 6.98412698, 1.02380952, 322, 2.55555556, 37.88, -122.23], rtol=1e-8)
    train, held_out = random_split(20_640, 1_000, None, 3)
    dataset = data.california_housing(1_000, key=3)
    scaler, target = StandardScaler().fit(raw[train]), StandardScaler().fit(value[train, None])
    np.testing.assert_allclose(dataset.x, scaler.transform(raw[train]), atol=1e-5)
    np.testing.assert_allclose(dataset.x_test, scaler.transform(raw[held_out]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dataset.y_test, target.transform(value[held_out, None]), atol=1e-5)
    assert dataset.supervised(losses.half_mse).outputs == 1
    with pytest.raises(ArgumentError, match="real targets"):
        dataset.supervised(losses.cross_entropy)


def test_breast_cancer():
    features, classes = load_breast_cancer(return_X_y=True)
    train, held_out = random_split(569, None, None, 1)
    dataset = data.breast_cancer(key=1)
    scaler = StandardScaler().fit(features[train])
    np.testing.assert_allclose(dataset.x_test, scaler.transform(features[held_out]), rtol=1e-5, atol=1e-5)
    squares = dataset.supervised(losses.mse)
    target = StandardScaler().fit(classes[train, None])
    np.testing.assert_allclose(squares.y_test, target.transform(classes[held_out, None]), atol=1e-6)
    assert squares.outputs == 1
    assert dataset.supervised(losses.cross_entropy).outputs == 2
    logistic = dataset.supervised(losses.logistic())
    np.testing.assert_array_equal(logistic.y[:, 0], 2 * classes[train] - 1)


def test_the_test_rows_stay_when_n_changes():
    few, many = data.breast_cancer(100), data.breast_cancer(400)
    np.testing.assert_array_equal(few.y_test, many.y_test)
    np.testing.assert_array_equal(few.y, many.y[:100])


def test_digits():
    dataset, images = data.digits(600, test=100), load_digits().images
    expected = (images[:600] - images[:600].mean()) / images[:600].std()
    np.testing.assert_allclose(dataset.x[..., 0], expected, atol=1e-6)
    np.testing.assert_allclose(
        dataset.x_test[-1, ..., 0], (images[-1] - images[:600].mean()) / images[:600].std(), atol=1e-6
    )
    with pytest.raises(ArgumentError, match="n must be at most 1,796"):
        data.digits(1797)


def test_reversal_is_a_reversal():
    dataset = data.reversal(50, test=20, length=6, symbols=4, key=2)
    source, shifted = dataset.x["source"], dataset.x["shifted"]
    np.testing.assert_array_equal(dataset.y + 1, source[:, ::-1])
    np.testing.assert_array_equal(shifted[:, 1:], dataset.y[:, :-1] + 1)
    assert (shifted[:, 0] == 0).all()
    assert set(np.unique(source)) == {1, 2, 3, 4}
    counts = np.bincount(data.reversal(10_000, key=0).x["source"].ravel())[1:]
    # Uniform over nine symbols: a binomial's standard deviation, four times.
    assert np.abs(counts - 1e5 / 9).max() < 4 * (1e5 / 9 * 8 / 9) ** 0.5


def test_targets_of_each_loss():
    dataset = data.digits(30, test=5)
    for loss in (losses.mse, losses.half_mse):
        y = dataset.supervised(loss).y
        np.testing.assert_array_equal(y, np.eye(10)[dataset.y])
    signed = dataset.encoded(data.signed_one_hot).supervised(losses.half_mse).y
    np.testing.assert_array_equal(signed, 2 * np.eye(10)[dataset.y] - 1)
    np.testing.assert_array_equal(dataset.supervised(losses.cross_entropy).y, dataset.y)
    with pytest.raises(ArgumentError, match="cross_entropy"):
        dataset.supervised(losses.logistic())


@pytest.mark.parametrize("scaling", [overall, per_channel, per_feature], ids=["overall", "channel", "feature"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_scaling_by_numpys_own_statistics(scaling, dtype):
    rng = np.random.default_rng(0)
    train, test = (rng.integers(0, 256, (n, 30, 20, 3)).astype(dtype) for n in (90, 10))
    train[:, 3, 4, 1] = 9
    axes = {overall: None, per_channel: (0, 1, 2), per_feature: 0}[scaling]
    mean, std = (f(train.astype(np.float64), axis=axes, keepdims=True) for f in (np.mean, np.std))
    x, x_test = scaling(train, test)
    assert x.dtype == (np.float64 if dtype == np.float64 else np.float32)
    for ours, raw in ((x, train), (x_test, test)):
        expected = (raw - mean) / np.where(std > 0, std, 1)
        # The mean is subtracted in the precision of the result: 255 ulp.
        np.testing.assert_allclose(ours, expected, atol=300 * np.finfo(x.dtype).eps)


def test_idx_by_hand():
    from steppe.data._real import read_idx

    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    content = bytes([0, 0, 8, 3]) + b"".join(int(k).to_bytes(4, "big") for k in pixels.shape) + pixels.tobytes()
    np.testing.assert_array_equal(read_idx(content, "images"), pixels)
    for wrong in (content[:-1], content + b"x", b"", gzip.compress(content), bytes([0, 0, 13, 3]) + content[4:]):
        with pytest.raises(data.DataError, match="not an idx file"):
            read_idx(wrong, "images")
