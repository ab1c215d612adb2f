"""Gradient descent on f(x) = Σᵢ w₂ᵢ relu(w₁ᵢx + b₁ᵢ) + b₂ in one dimension: O(k + n) a step, not O(kn)."""

import numba
import numpy as np

# No fastmath: sums are rounded in the order written, the same in a fresh compile and from numba's cache.
kernel = numba.njit(nogil=True, cache=True, error_model="numpy")


@kernel
def active_set(a, b, x):  # type: ignore[no-untyped-def]
    """The number of the set {j : a xⱼ + b > 0}, x sorted."""
    n = len(x)
    if a * x[n - 1] + b > 0.0:
        p = n - 1
        while p > 0 and a * x[p - 1] + b > 0.0:
            p -= 1
        return p
    p = 0
    while p < n and a * x[p] + b > 0.0:
        p += 1
    return n + p


@kernel
def advance(w, output, x, y, lr, warmup, below, factor, target, first, count):  # type: ignore[no-untyped-def]
    """`count` steps of one run in place, from step `first`. Returns (steps done, halt, loss after them).

    w: rows w₁, b₁, w₂. output: b₂, and the factor that multiplies the step size, set to `factor` once the loss is
    below `below`. Halts: 0 not, 1 the loss is at most `target`, 2 it is not finite.
    """
    k, n = w.shape[1], len(x)
    w1, b1, w2 = w[0], w[1], w[2]
    # A neuron is still in its set if these two points are as active as the set says.
    one, other = np.zeros(2 * n), np.zeros(2 * n)
    one_on, other_on = np.zeros(2 * n, np.bool_), np.zeros(2 * n, np.bool_)
    for p in range(2 * n):
        q = p % n
        one[p], other[p] = (x[0], x[n - 1]) if q == 0 else (x[q], x[q - 1])
        one_on[p], other_on[p] = p < n, p == 0 or p > n
    slopes, offsets, sums, moments = np.zeros(2 * n), np.zeros(2 * n), np.zeros(2 * n), np.zeros(2 * n)
    sets, r, loss = np.zeros(k, np.int64), np.zeros(n), np.inf
    for i in range(k):
        p = active_set(w1[i], b1[i], x)
        sets[i] = p
        slopes[p] += w1[i] * w2[i]
        offsets[p] += b1[i] * w2[i]
    for t in range(first, first + count + 1):
        _residuals(slopes, offsets, output[0], x, y, r)
        loss = 0.0
        for j in range(n):
            loss += r[j] * r[j]
        loss /= 2 * n
        if not np.isfinite(loss):
            return t - first, 2, loss
        if loss <= target:
            return t - first, 1, loss
        if t == first + count:
            break
        if loss < below:
            output[1] = factor
        rate = lr * output[1] / n
        if t < warmup:
            rate *= (t + 1) / warmup
        _back(r, x, rate, sums, moments)
        output[0] -= sums[0]
        slopes[:] = 0.0
        offsets[:] = 0.0
        for i in range(k):
            p, a, b, c = sets[i], w1[i], b1[i], w2[i]
            s, m = sums[p], moments[p]
            new = c - (a * m + b * s)
            a -= c * m
            b -= c * s
            w1[i], b1[i], w2[i] = a, b, new
            if ((a * one[p] + b > 0.0) != one_on[p]) | ((a * other[p] + b > 0.0) != other_on[p]):
                p = active_set(a, b, x)
                sets[i] = p
            slopes[p] += a * new
            offsets[p] += b * new
    return count, 0, loss


@kernel
def _residuals(slopes, offsets, bias, x, y, r):  # type: ignore[no-untyped-def]
    """r = f(x) − y from the sums over the neurons of each set."""
    n = len(x)
    slope, offset = 0.0, bias
    for j in range(n):
        slope += slopes[j]
        offset += offsets[j]
        r[j] = slope * x[j] + offset - y[j]
    slope, offset = 0.0, 0.0
    for j in range(n - 2, -1, -1):
        slope += slopes[n + j + 1]
        offset += offsets[n + j + 1]
        r[j] += slope * x[j] + offset


@kernel
def _back(r, x, rate, sums, moments):  # type: ignore[no-untyped-def]
    """rate · Σ rⱼ and rate · Σ rⱼxⱼ over the points of each set; those of the empty set stay 0."""
    n = len(x)
    s, m = 0.0, 0.0
    for j in range(n - 1, -1, -1):
        r[j] *= rate
        s += r[j]
        m += r[j] * x[j]
        sums[j], moments[j] = s, m
    s, m = 0.0, 0.0
    for j in range(n - 1):
        s += r[j]
        m += r[j] * x[j]
        sums[n + j + 1], moments[n + j + 1] = s, m
