"""Two-layer networks of wen2023 with normalisation after the activation: BatchNorm and LayerNorm, simplified or not."""

import abc
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from steppe import check
from steppe.activations import Activation, relu
from steppe.networks._layers import Freezable, Params
from steppe.networks._mlp import (
    ClosedForm,
    apply_first_layer,
    extended_inputs,
    extended_squares,
    init_first_layer,
    init_weights,
)
from steppe.problem import Predict

# The parameters and inputs that statistics are computed from.
Source = tuple[Params, Array]

# Every normalisation is a quotient g = N/√ψ. Its derivatives follow from those of N and ψ.


def quotient_gradient(N: Array, squares: Array, cross: Array, psi: Array, psi_squares: Array) -> Array:
    """‖∇g‖² = ‖∇N‖²/ψ − N ∇N·∇ψ/ψ² + ¼ N² ‖∇ψ‖²/ψ³, given squares = ‖∇N‖², cross = ∇N·∇ψ, psi_squares = ‖∇ψ‖²."""
    return squares / psi - N * cross / psi**2 + N**2 * psi_squares / (4 * psi**3)


def quotient_laplacian(N: Array, lap_N: Array, cross: Array, psi: Array, psi_squares: Array, lap_psi: Array) -> Array:
    """Δg = ψ^{−½} ΔN − ψ^{−3/2} ∇N·∇ψ + N (¾ ψ^{−5/2} ‖∇ψ‖² − ½ ψ^{−3/2} Δψ).

    >>> quotient_laplacian(1.0, 0.0, 2.0, 4.0, 4.0, 2.0)             # t/√(t² + 3) at t = 1: g″ = −9t/ψ^{5/2}
    -0.28125
    """
    return lap_N / psi**0.5 - cross / psi**1.5 + N * (0.75 * psi_squares / psi**2.5 - 0.5 * lap_psi / psi**1.5)


@final
class TrainingInputs:
    """A read-only copy of x, compared and hashed by content, so that equal networks share compiled code.

    >>> TrainingInputs([[1.0, 2.0]]) == TrainingInputs(np.array([[1.0, 2.0]]))
    True
    """

    __slots__ = ("_hash", "array")

    def __init__(self, x: Any):
        self.array = np.array(x, dtype=float)
        if self.array.ndim != 2 or self.array.shape[0] == 0:
            check.refuse("x", "one row a training example", f"shape {self.array.shape}", "Pass the problem's inputs.")
        check.finite("x", self.array)
        self.array.setflags(write=False)
        self._hash = hash((self.array.shape, self.array.tobytes()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingInputs) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return "TrainingInputs({} × {})".format(*self.array.shape)


class OwnStatistics(Freezable):
    """A network that carries its training inputs and takes batch statistics from them, for any x."""

    train: TrainingInputs | Any

    @abc.abstractmethod
    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        """Outputs; with `source`, the statistics of these parameters and inputs."""

    def __call__(self, params: Params, x: Array) -> Array:
        return self.forward(params, x)

    def frozen(self) -> Predict:
        return _ConstantStatistics(self)


@dataclass(frozen=True)
class _ConstantStatistics:
    """A network that carries its training inputs, with their statistics held constant."""

    network: OwnStatistics

    def __call__(self, params: Params, x: Array) -> Array:
        inputs = jnp.asarray(self.network.train.array, x.dtype)
        return self.network.forward(params, x, (jax.lax.stop_gradient(params), inputs))


class Derivatives(NamedTuple):
    """g, ‖∇g‖² and Δg for each example and neuron, (n, m) each; derivatives in the neuron's row of (W₁, b₁)."""

    value: Array
    squares: Array
    laplacian: Array


@dataclass(frozen=True)
class Standardise:
    """g = (σ(h) − μ)/√ψ: hidden activations over their spread on the training set, with ψ = var + eps.

    Without `centre`, μ = 0 and ψ is the mean square.
    """

    train: TrainingInputs
    activation: Activation
    bias: bool
    centre: bool
    eps: float

    def _hidden(self, params: Params, x: Array) -> Array:
        return apply_first_layer(params, x, bias=self.bias)

    def _inputs(self, params: Params) -> Array:
        return jnp.asarray(self.train.array, params["W1"].dtype)

    def _moments(self, a: Array) -> tuple[Array, Array, Array]:
        """μ, ψ and whether the neuron is active on any training input, (1, m) each."""
        mean = jnp.mean(a, axis=0, keepdims=True) if self.centre else jnp.zeros_like(a[:1])
        psi = jnp.mean((a - mean) ** 2, axis=0, keepdims=True) + self.eps
        # A neuron that is 0 on the whole training set would be 0/0, or 1/0 on a test point: it outputs 0 everywhere.
        return mean, jnp.where(psi > 0, psi, 1), psi > 0

    def __call__(self, params: Params, x: Array, source: Source | None = None) -> Array:
        """g(x), by default with the statistics of the training inputs at the same parameters."""
        mean, psi, alive = self._moments(self.activation(self._hidden(*(source or (params, self._inputs(params))))))
        return jnp.where(alive, (self.activation(self._hidden(params, x)) - mean) / jnp.sqrt(psi), 0)

    def derivatives(self, params: Params, x: Array) -> Derivatives:
        train = self._inputs(params)
        h, rows = self._hidden(params, train), extended_inputs(train, bias=self.bias)
        lengths = extended_squares(train, bias=self.bias)
        a, slope, bend = self.activation(h), self.activation.slope(h), self.activation.curvature(h)
        mean, psi, alive = self._moments(a)
        n, centre = len(train), 1.0 if self.centre else 0.0
        grad_mean, lap_mean = centre * slope.T @ rows / n, centre * lengths @ bend / n  # (m, d′), (m,)
        grad_psi = 2 * ((a - mean) * slope).T @ rows / n
        lap_psi = 2 * lengths @ (slope**2 + (a - mean) * bend) / n - 2 * jnp.sum(grad_mean**2, axis=1)

        h, rows = self._hidden(params, x), extended_inputs(x, bias=self.bias)
        lengths = extended_squares(x, bias=self.bias)[:, None]
        N, slope = self.activation(h) - mean, self.activation.slope(h)
        squares = slope**2 * lengths - 2 * slope * (rows @ grad_mean.T) + jnp.sum(grad_mean**2, axis=1)[None]
        cross = slope * (rows @ grad_psi.T) - jnp.sum(grad_mean * grad_psi, axis=1)[None]
        psi_squares = jnp.sum(grad_psi**2, axis=1)[None]
        lap_N = self.activation.curvature(h) * lengths - lap_mean[None]
        return Derivatives(
            jnp.where(alive, N / jnp.sqrt(psi), 0),
            jnp.where(alive, quotient_gradient(N, squares, cross, psi, psi_squares), 0),
            jnp.where(alive, quotient_laplacian(N, lap_N, cross, psi, psi_squares, lap_psi[None]), 0),
        )


@dataclass(frozen=True)
class SimBN(OwnStatistics, ClosedForm):
    """f(x) = Σⱼ W₂ⱼ γⱼ σ(hⱼ(x)) / sⱼ, sⱼ² the mean of σ(hⱼ)² over the training inputs: 2-MLP-Sim-BN of wen2023.

    Parameters W1, b1, gamma, W2. This is BatchNorm without mean and bias. The network carries the training inputs, so
    it is the same function on a test set and on a single example; derivatives include the statistics. γ has one entry
    a neuron, as in the paper's proofs (section 2 prints a scalar). A neuron that is 0 on the whole training set, 0/0 in
    the paper, outputs 0.

    >>> net = SimBN([[1.0], [7.0]], bias=False)
    >>> params = {"W1": np.array([[2.0]]), "gamma": np.array([3.0]), "W2": np.array([-1.0])}
    >>> net(params, np.array([[5.0]])).tolist()                     # −3 · 10 / √((2² + 14²)/2)
    [-3.0]
    """

    train: TrainingInputs | ArrayLike
    bias: bool = True
    activation: Activation = relu
    standardise: Standardise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        train = self.train if isinstance(self.train, TrainingInputs) else TrainingInputs(self.train)
        object.__setattr__(self, "train", train)
        parts = Standardise(train, self.activation, self.bias, centre=False, eps=0.0)
        object.__setattr__(self, "standardise", parts)

    def init(
        self,
        d: int,
        width: int,
        rng: np.random.Generator,
        dtype: Any = np.float32,
        *,
        first_layer_scale: float = 1.0,
        gamma: float = 1.0,
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, and γ = 1.

        With γ = 1 a single example has ‖∇f‖² ≈ width, so learning rates above 1/width diverge.
        """
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"gamma": np.full(width, gamma, dtype), "W2": init_weights(rng, width, width, dtype)}

    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        output: Array = self.standardise(params, x, source) @ (params["gamma"] * params["W2"])
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        g = self.standardise.derivatives(params, x)
        outer = params["gamma"] * params["W2"]
        norms = g.squares @ outer**2 + g.value**2 @ (params["gamma"] ** 2 + params["W2"] ** 2)
        return norms, g.laplacian @ outer


@dataclass(frozen=True)
class SimLN(ClosedForm):
    """f(x) = W₂ · a / max(‖a‖, ε) with a = σ(W₁x + b₁): 2-MLP-Sim-LN of wen2023, LayerNorm without mean and bias.

    Parameters W1, b1, W2.

    >>> params = {"W1": np.array([[3.0], [4.0]]), "W2": np.array([1.0, 0.0])}
    >>> SimLN(eps=1.0, bias=False)(params, np.array([[1.0], [0.1]])).round(6).tolist()  # 3/5; 0.3/1 as ‖a‖ = 0.5 < ε
    [0.6, 0.3]
    """

    eps: float
    bias: bool = True
    activation: Activation = relu

    def __post_init__(self) -> None:
        check.number("eps", self.eps, above=0.0)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"W2": init_weights(rng, width, width, dtype)}

    def _scale(self, a: Array) -> tuple[Array, Array]:
        """max(‖a‖, ε)² and whether ‖a‖ > ε, (n, 1) each; the slope at a = 0 is 0, not NaN.

        NaN if ‖a‖² overflows: divided by ∞ the output would be 0, and a run that diverges would seem to stand still.
        """
        square = jnp.sum(a**2, axis=1, keepdims=True)
        long = square > self.eps**2
        square = jnp.where(jnp.isinf(square), jnp.nan, square)
        return jnp.where(long, square, self.eps**2), long

    def __call__(self, params: Params, x: Array) -> Array:
        a = self.activation(apply_first_layer(params, x, bias=self.bias))
        output: Array = (a / jnp.sqrt(self._scale(a)[0])) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """By neuron: ∂f/∂aⱼ and ∂²f/∂aⱼ² of the quotient W₂·a/√ψ, ψ = ‖a‖² or ε², then the chain rule through σ."""
        h = apply_first_layer(params, x, bias=self.bias)
        a, slope, W2 = self.activation(h), self.activation.slope(h), params["W2"][None]
        lengths = extended_squares(x, bias=self.bias)
        psi, long = self._scale(a)
        N, grad_psi = (a @ params["W2"])[:, None], jnp.where(long, 2 * a, 0)
        first = W2 / jnp.sqrt(psi) - N * grad_psi / (2 * psi**1.5)
        second = quotient_laplacian(N, 0 * a, W2 * grad_psi, psi, grad_psi**2, jnp.where(long, 2.0, 0.0) + 0 * a)
        norms = lengths * jnp.sum((slope * first) ** 2, axis=1) + jnp.sum(a**2 / psi, axis=1)
        return norms, lengths * jnp.sum(slope**2 * second + self.activation.curvature(h) * first, axis=1)


@dataclass(frozen=True)
class BatchNorm(OwnStatistics, ClosedForm):
    """f(x) = W₂ · (γ ⊙ (σ(h(x)) − μ)/√(var + eps) + β), h = W₁x + b₁: the full BatchNorm.

    Parameters W1, b1, gamma, beta, W2. μ and var are the mean and variance of σ(h) over the training inputs that the
    network carries; derivatives include them. It comes after the activation, as the paper's simplified version does.

    >>> net = BatchNorm([[1.0], [3.0]], bias=False, eps=0.0)
    >>> params = {"W1": np.ones((1, 1)), "gamma": np.ones(1), "beta": np.ones(1), "W2": np.array([2.0])}
    >>> net(params, np.array([[4.0]])).tolist()                     # 2 · ((4 − 2)/1 + 1)
    [6.0]
    """

    train: TrainingInputs | ArrayLike
    bias: bool = True
    activation: Activation = relu
    eps: float = 1e-5
    standardise: Standardise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.number("eps", self.eps, minimum=0.0)
        train = self.train if isinstance(self.train, TrainingInputs) else TrainingInputs(self.train)
        object.__setattr__(self, "train", train)
        parts = Standardise(train, self.activation, self.bias, centre=True, eps=self.eps)
        object.__setattr__(self, "standardise", parts)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, γ = 1 and β = 0."""
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        params |= {"gamma": np.ones(width, dtype), "beta": np.zeros(width, dtype)}
        return params | {"W2": init_weights(rng, width, width, dtype)}

    def forward(self, params: Params, x: Array, source: Source | None = None) -> Array:
        normalised = params["gamma"][None] * self.standardise(params, x, source) + params["beta"][None]
        output: Array = normalised @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        g = self.standardise.derivatives(params, x)
        gamma, beta, W2 = params["gamma"], params["beta"], params["W2"]
        outputs = gamma[None] * g.value + beta[None]
        norms = g.squares @ (gamma * W2) ** 2 + jnp.sum(outputs**2, axis=1) + (g.value**2 + 1) @ W2**2
        return norms, g.laplacian @ (gamma * W2)


@dataclass(frozen=True)
class LayerNorm(ClosedForm):
    """f(x) = W₂ · (γ ⊙ (a − ā)/√(var a + eps) + β), a = σ(W₁x + b₁): the full LayerNorm.

    Parameters W1, b1, gamma, beta, W2. Mean ā and variance are taken over the neurons of one example.

    >>> net = LayerNorm(bias=False, eps=0.0)
    >>> params = {"W1": np.array([[1.0], [3.0]]), "gamma": np.ones(2), "beta": np.ones(2), "W2": np.array([2.0, 5.0])}
    >>> net(params, np.array([[4.0]])).tolist()                     # 2 · (−1 + 1) + 5 · (1 + 1)
    [10.0]
    """

    bias: bool = True
    activation: Activation = relu
    eps: float = 1e-5

    def __post_init__(self) -> None:
        check.number("eps", self.eps, minimum=0.0)

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's defaults: uniform on ±1/√fan_in, γ = 1 and β = 0."""
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        params |= {"gamma": np.ones(width, dtype), "beta": np.zeros(width, dtype)}
        return params | {"W2": init_weights(rng, width, width, dtype)}

    def _centred(self, a: Array) -> tuple[Array, Array]:
        """a − ā, (n, m), and ψ = var a + eps, (n, 1)."""
        centred = a - jnp.mean(a, axis=1, keepdims=True)
        return centred, jnp.mean(centred**2, axis=1, keepdims=True) + self.eps

    def __call__(self, params: Params, x: Array) -> Array:
        centred, psi = self._centred(self.activation(apply_first_layer(params, x, bias=self.bias)))
        output: Array = (params["gamma"][None] * centred / jnp.sqrt(psi) + params["beta"][None]) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """By neuron, as in `SimLN`, of the quotient p·(a − ā)/√ψ with p = γ ⊙ W₂."""
        h = apply_first_layer(params, x, bias=self.bias)
        slope, lengths = self.activation.slope(h), extended_squares(x, bias=self.bias)
        gamma, beta, W2 = params["gamma"], params["beta"], params["W2"]
        p = gamma * W2
        centred, psi = self._centred(self.activation(h))
        m = centred.shape[1]
        N, grad_N, grad_psi = (centred @ p)[:, None], (p - jnp.mean(p))[None], 2 * centred / m
        first = grad_N / jnp.sqrt(psi) - N * grad_psi / (2 * psi**1.5)
        lap_psi = jnp.full_like(centred, 2 / m - 2 / m**2)
        second = quotient_laplacian(N, 0 * centred, grad_N * grad_psi, psi, grad_psi**2, lap_psi)
        unit = centred / jnp.sqrt(psi)
        norms = (
            lengths * jnp.sum((slope * first) ** 2, axis=1)
            + jnp.sum((gamma[None] * unit + beta[None]) ** 2, axis=1)
            + (unit**2 + 1) @ W2**2
        )
        return norms, lengths * jnp.sum(slope**2 * second + self.activation.curvature(h) * first, axis=1)
