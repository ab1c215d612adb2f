import dataclasses

import numpy as np
import pytest
from cases.planted import Counted, plant

from steppe.linalg import Tracker, largest

P = 300


def follow(operators, tracker):
    history = []
    for A in operators:
        matvec = Counted(A)
        estimate, tracker = tracker.measure(matvec)
        assert estimate.matvecs == matvec.calls
        history.append((estimate, tracker))
    return history


def rotation(angle, i, j, p=P):
    G = np.eye(p)
    G[[i, j], [i, j]] = np.cos(angle)
    G[i, j], G[j, i] = -np.sin(angle), np.sin(angle)
    return G


def spectrum_with(*top):
    return np.concatenate([np.linspace(-0.05, 0.3, P - len(top)), top])


def turning(steps, angle):
    """A slowly turning operator with three outliers."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((P, P)))[0]
    for _ in range(steps):
        Q = Q @ rotation(angle, 0, P - 1) @ rotation(angle, 5, P - 2) @ rotation(angle, P - 2, P - 1)
        yield (Q * spectrum_with(0.7, 0.9, 1.0)) @ Q.T


def test_few_products_a_call_for_the_accuracy_asked():
    history = follow(turning(40, 0.03), Tracker(P, key=0))
    warm = history[1:]
    assert max(e.matvecs for e, _ in warm) <= 6
    assert max(abs(e.value - 1.0) for e, _ in warm) <= 1e-3
    cold = np.mean([largest(lambda v, A=A: A @ v, P, key=i).estimate.matvecs for i, A in enumerate(turning(5, 0.03))])
    assert cold >= 2 * np.mean([e.matvecs for e, _ in warm])


def grown(values):
    return follow((v * np.diag(spectrum_with(0.4, 1.0)) for v in values), Tracker(P, key=0))


def test_an_isolated_leader_takes_two_products_and_the_second_vector_every_other_time():
    """One product for the leader and one for the watch; the second vector too until the growth is known."""
    history = grown(1 + 0.01 * np.arange(12))
    assert [e.matvecs for e, _ in history[1:]] == [3, 3, 3, 2, 3, 2, 3, 2, 3, 2, 3]
    assert all(tracker.settled for _, tracker in history)


def test_the_second_vector_is_always_multiplied_when_growth_slows():
    history = grown(2 - 0.9 ** np.arange(12.0))
    assert [e.matvecs for e, _ in history[1:]] == [3] * 11


def test_intervals_cover_and_settled_speaks_of_the_value():
    for estimate, tracker in follow(turning(30, 0.05), Tracker(P, key=3)):
        assert estimate.lower <= 1.0 + 1e-12
        assert estimate.upper >= 1.0
        assert estimate.converged == (estimate.upper - estimate.lower <= 1e-3 * estimate.value)
        assert not tracker.settled or abs(estimate.value - 1.0) <= 1e-3


def test_a_fall_is_followed_within_the_budget():
    """As after an instability of gradient descent: the leader falls some percent in each call, below others that were
    never near it, while all of them turn."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((P, P)))[0]
    tracker = Tracker(P, key=0)
    for t in range(14):
        leader = 1.1 - 0.02 * max(0, t - 4)
        Q = Q @ rotation(0.02, P - 1, P - 2) @ rotation(0.02, P - 2, P - 3) @ rotation(0.02, 7, P - 1)
        A = (Q * spectrum_with(0.84, 0.87, 0.9, leader)) @ Q.T
        estimate, tracker = tracker.measure(lambda v, A=A: A @ v)
        assert estimate.matvecs <= 6 or t == 0
        assert estimate.value == pytest.approx(max(0.9, leader), rel=1e-3)


def test_a_crossing_is_noticed_at_once():
    """The second eigenvalue grows past the first; at the crossing the leader changes and the value never lags."""
    crossings = []
    operators = [np.diag(spectrum_with(0.6, 0.8 + 0.02 * t, 1.0)) for t in range(20)]
    for t, (estimate, tracker) in enumerate(follow(operators, Tracker(P, key=1))):
        assert abs(estimate.value - max(1.0, 0.8 + 0.02 * t)) <= 1e-3
        crossings += [t] * tracker.takeover
    assert crossings == [11]


@pytest.mark.parametrize("keep", [2, 4])
@pytest.mark.parametrize("key", range(4))
def test_an_eigenvector_it_had_no_component_in_is_found_by_the_noise(keep, key):
    """A direction of the bulk grows past the leader; no vector kept at the start has a component in it.

    The noise gives it 0.1/√300 of the chain, and the product of each call multiplies that by λ/0.95 at least relative
    to the kept vectors, and by more relative to the rest: it is found before it is 1.5 times the former leader.
    """
    start = spectrum_with(0.5, 0.9, 0.95, 1.0)
    tracker = Tracker(P, keep=keep, key=key)
    _, tracker = tracker.measure(lambda v: start * v)
    hidden = tracker.vectors.copy()
    hidden[:, 7] = 0.0
    tracker = dataclasses.replace(tracker, vectors=hidden, watch=None)
    late, takeovers = 0, 0
    for t in range(60):
        d = start.copy()
        d[7] = min(1.5, 0.03 * t)
        estimate, tracker = tracker.measure(lambda v, d=d: d * v)
        late += abs(estimate.value - d.max()) > 1e-3 * d.max()
        takeovers += tracker.takeover
    assert takeovers == 1
    assert late < (1.5 - 1.0) / 0.03
    assert abs(tracker.vector[7]) > 0.999


def test_a_sudden_intruder_is_found_within_a_few_calls():
    """A sudden change: within one call a new leader of twice the size, in a direction never seen."""
    before = spectrum_with(0.9, 1.0)
    after = before.copy()
    after[11] = 2.0
    for key in range(20):
        _, tracker = Tracker(P, key=key).measure(lambda v: before * v)
        values = []
        for _ in range(8):
            estimate, tracker = tracker.measure(lambda v: after * v)
            values.append(estimate.value)
        assert abs(values[-1] - 2.0) <= 2e-3


def test_certify_brackets_and_refreshes():
    A = plant(spectrum_with(0.6, 0.9, 1.0), 0)
    _, tracker = Tracker(P, key=0).measure(lambda v: A @ v)
    B = A + 0.3 * np.outer(np.eye(P)[0], np.eye(P)[0])
    estimate, tracker = tracker.certify(lambda v: B @ v)
    assert estimate.converged
    assert estimate.lower <= np.linalg.eigvalsh(B)[-1] <= estimate.upper


def test_a_call_is_pure():
    A = plant(spectrum_with(0.6, 0.9, 1.0), 0)
    _, tracker = Tracker(P, key=0).measure(lambda v: A @ v)
    kept = tracker.vectors.copy()
    first, one = tracker.measure(lambda v: 1.1 * A @ v)
    again, two = tracker.measure(lambda v: 1.1 * A @ v)
    assert first == again
    assert np.array_equal(one.vectors, two.vectors)
    assert np.array_equal(tracker.vectors, kept)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tracker.calls = 5


@pytest.mark.parametrize("p", [1, 2, 3, 7, 9])
def test_small_dimensions(p):
    A = plant(np.linspace(-1.0, 2.0, p) if p > 1 else np.array([2.0]), 0)
    zero = np.zeros((p, p))
    for estimate, _ in follow([A, 1.1 * A, 1.2 * A, zero, zero, zero, A, A, A, A, A], Tracker(p, key=0)):
        assert np.isfinite(estimate.value)
    assert estimate.value == pytest.approx(2.0, rel=1e-3)
    assert follow([A, 1.2 * A], Tracker(p, key=0))[-1][0].value == pytest.approx(2.4, rel=1e-3)


def crowded(steps, seed):
    """Thirty eigenvalues within a twelfth below λ_max, as at the edge of stability, all of them mixed at every step."""
    rng = np.random.default_rng(seed)
    top = 1.0 + 0.1 * np.sin(np.arange(steps))
    Q = np.linalg.qr(rng.standard_normal((P, P)))[0]
    values = np.concatenate([np.linspace(-0.05, 0.5, P - 30), 1 - 0.08 * np.linspace(1, 0, 30) ** 1.5])
    for t in range(steps):
        mixed = np.linalg.qr(np.eye(30) + 0.5 * rng.standard_normal((30, 30)))[0]
        Q = np.hstack([Q[:, :-30], Q[:, -30:] @ mixed])
        yield top[t], (Q * (top[t] * values)) @ Q.T


@pytest.mark.parametrize("seed", range(4))
def test_insist_has_the_value_to_rtol_in_a_crowd(seed):
    """If few products leave the value in doubt it is certified; the count includes both."""
    tracker, doubted = Tracker(P, key=seed), 0
    for truth, A in crowded(15, seed):
        matvec = Counted(A)
        estimate, tracker = tracker.insist(matvec)
        assert estimate.matvecs == matvec.calls
        assert abs(estimate.value / truth - 1) <= 1e-3
        doubted += estimate.converged
    assert doubted > 1  # the first call is certified anyway


def test_insist_on_a_small_operator_certifies_once():
    A = plant(np.array([1.0, 2.0, 3.0]), seed=0)
    estimate, tracker = Tracker(3, key=0).insist(lambda v: A @ v)
    again, _ = tracker.insist(lambda v: A @ v)
    assert max(estimate.matvecs, again.matvecs) <= 3
    assert again.value == pytest.approx(3.0)
