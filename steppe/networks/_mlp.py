"""The fully connected networks of wen2023 and mulayoff2021, and the first layer that they share."""

import abc
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from steppe import check
from steppe.activations import Activation, relu
from steppe.networks._layers import Params, uniform


def init_weights(rng: np.random.Generator, shape: int | tuple[int, int], fan_in: int, dtype: Any) -> NDArray[Any]:
    """PyTorch's default for linear layers, weights and biases: uniform on ±1/√fan_in."""
    # Not fan_in**-0.5, the bound in `Standard`: the two differ in the last bit, and the draws of the papers' runs too.
    return uniform(rng, shape, 1 / np.sqrt(fan_in), dtype)


def init_first_layer(d: int, width: int, rng: np.random.Generator, dtype: Any, *, bias: bool, scale: float) -> Params:
    """PyTorch's default times `scale`: W1 (width, d) and, with `bias`, b1 (width,)."""
    check.integer("d", d, minimum=1)
    check.integer("width", width, minimum=1)
    scale = check.number("first_layer_scale", scale, above=0.0, remedy="wen2023 takes 1, and 0.01 in figure 6a.")
    params = {"W1": init_weights(rng, (width, d), d, dtype)}
    if bias:
        params["b1"] = init_weights(rng, width, d, dtype)
    return {name: a * a.dtype.type(scale) for name, a in params.items()}


def apply_first_layer(params: Params, x: Array, *, bias: bool) -> Array:
    """h = W₁x + b₁, before the activation."""
    h: Array = x @ params["W1"].T
    return h + params["b1"][None] if bias else h


def extended_inputs(x: Array, *, bias: bool) -> Array:
    """x′ = (x, 1), the input that a row of (W₁, b₁) sees; x itself without bias."""
    return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=1) if bias else x


def extended_squares(x: Array, *, bias: bool) -> Array:
    """‖x′‖² of each example."""
    return jnp.sum(x**2, axis=1) + (1 if bias else 0)


class ClosedForm(abc.ABC):
    """A network with scalar output that knows ‖∇f(x)‖² and Δf(x) = tr ∇²f(x), derivatives in all parameters.

    The exact trace then costs one forward pass instead of one Hessian product a parameter.
    """

    @abc.abstractmethod
    def curvature(self, params: Any, x: Array) -> tuple[Array, Array]:
        """(‖∇f(xᵢ)‖², Δf(xᵢ)) for each example, (n,) each."""


@dataclass(frozen=True)
class TwoLayer(ClosedForm):
    """f(x) = W₂ · σ(W₁x + b₁), or W₂ · σ(W₁x) with `bias=False`: the network of most of wen2023.

    Parameters W1 (m, d), b1 (m,), W2 (m,).

    >>> net = TwoLayer(bias=False)
    >>> params = {"W1": np.array([[1.0, 0.0], [0.0, -1.0]]), "W2": np.array([2.0, 3.0])}
    >>> net(params, np.array([[5.0, 7.0]])).tolist()                # 2·relu(5) + 3·relu(−7)
    [10.0]
    """

    bias: bool = True
    activation: Activation = relu

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        return params | {"W2": init_weights(rng, width, width, dtype)}

    def preactivations(self, params: Params, x: Array) -> Array:
        return apply_first_layer(params, x, bias=self.bias)

    def __call__(self, params: Params, x: Array) -> Array:
        output: Array = self.activation(self.preactivations(params, x)) @ params["W2"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """‖∇f‖² = ‖W₂ ⊙ σ′(h)‖² ‖x′‖² + ‖σ(h)‖² (wen2023, Eq. 2) and Δf = ‖x′‖² Σⱼ W₂ⱼ σ″(hⱼ), x′ = (x, 1)."""
        h = self.preactivations(params, x)
        squares = extended_squares(x, bias=self.bias)
        slopes = params["W2"][None] * self.activation.slope(h)
        norms = jnp.sum(slopes**2, axis=1) * squares + jnp.sum(self.activation(h) ** 2, axis=1)
        return norms, squares * (self.activation.curvature(h) @ params["W2"])


@dataclass(frozen=True)
class OneHidden:
    """f(x) = W₂ σ(W₁x + b₁) + b₂, the network of mulayoff2021: one hidden layer with both biases.

    Parameters W1 (m, d), b1 (m,), and W2 (m,), b2 () for a scalar output, or W2 (o, m), b2 (o,) for o outputs.

    >>> params = {"W1": np.array([[1.0], [-1.0]]), "b1": np.zeros(2), "W2": np.ones(2), "b2": np.array(0.5)}
    >>> OneHidden()(params, np.array([[-2.0], [3.0]])).tolist()     # |x| + ½
    [2.5, 3.5]
    """

    activation: Activation = relu

    def init(
        self,
        d: int,
        width: int,
        rng: np.random.Generator,
        dtype: Any = np.float64,
        *,
        outputs: int | None = None,
        scale: float = 1.0,
    ) -> Params:
        """PyTorch's default initialisation of both layers, weights and biases, all times `scale`."""
        scale = check.number("scale", scale, above=0.0, remedy="mulayoff2021 takes 0.75 to 15.")
        shape = width if outputs is None else (check.integer("outputs", outputs, minimum=1), width)
        params = init_first_layer(d, width, rng, dtype, bias=True, scale=1.0)
        params["W2"] = init_weights(rng, shape, width, dtype)
        params["b2"] = init_weights(rng, 1 if outputs is None else outputs, width, dtype)
        if outputs is None:
            params["b2"] = params["b2"][0]
        return {name: np.asarray(a * np.dtype(dtype).type(scale)) for name, a in params.items()}

    def preactivations(self, params: Params, x: Array) -> Array:
        return apply_first_layer(params, x, bias=True)

    def __call__(self, params: Params, x: Array) -> Array:
        hidden = self.activation(self.preactivations(params, x))
        W2, b2 = jnp.asarray(params["W2"]), jnp.asarray(params["b2"])
        return hidden @ W2.T + jnp.broadcast_to(b2, (len(x), *b2.shape))


@dataclass(frozen=True)
class MLP(ClosedForm):
    """f(x) = W_D σ(… W₂ σ(W₁x + b₁)), MLP-Bias of wen2023 at any depth D: only the first layer has a bias.

    Parameters W1 (m, d), b1 (m,) unless `bias=False`, W2 … (m, m), WD (m,).

    >>> net = MLP(depth=3)
    >>> params = {"W1": np.array([[2.0]]), "b1": np.array([1.0]), "W2": np.array([[3.0]]), "W3": np.array([-1.0])}
    >>> net(params, np.array([[4.0]])).tolist()                     # −1 · 3 · (2·4 + 1)
    [-27.0]
    """

    depth: int
    bias: bool = True
    activation: Activation = relu

    def __post_init__(self) -> None:
        check.integer("depth", self.depth, minimum=2, remedy="depth counts the weight matrices, the last included.")

    def init(
        self, d: int, width: int, rng: np.random.Generator, dtype: Any = np.float32, *, first_layer_scale: float = 1.0
    ) -> Params:
        """PyTorch's default initialisation: uniform on ±1/√fan_in, layer by layer."""
        params = init_first_layer(d, width, rng, dtype, bias=self.bias, scale=first_layer_scale)
        hidden = {f"W{k}": init_weights(rng, (width, width), width, dtype) for k in range(2, self.depth)}
        return params | hidden | {f"W{self.depth}": init_weights(rng, width, width, dtype)}

    def preactivations(self, params: Params, x: Array) -> list[Array]:
        """h₁ … h_{D−1}, (n, m) each."""
        layers = [apply_first_layer(params, x, bias=self.bias)]
        for k in range(2, self.depth):
            layers.append(self.activation(layers[-1]) @ params[f"W{k}"].T)
        return layers

    def __call__(self, params: Params, x: Array) -> Array:
        output: Array = self.activation(self.preactivations(params, x)[-1]) @ params[f"W{self.depth}"]
        return output

    def curvature(self, params: Params, x: Array) -> tuple[Array, Array]:
        """‖∇f‖² = Σ_l ‖δ_l‖² ‖a_{l−1}‖² with δ_l = ∂f/∂h_l, and Δf = Σ_l ‖a_{l−1}‖² Σⱼ ∂²f/∂h_{lj}².

        f is piecewise linear in the weights of one layer if σ is, so Δf = 0 then.
        """
        layers = self.preactivations(params, x)
        squares = [extended_squares(x, bias=self.bias), *(jnp.sum(self.activation(h) ** 2, axis=1) for h in layers)]
        deltas: list[Array] = []
        back = params[f"W{self.depth}"][None]
        for k in range(self.depth - 1, 0, -1):
            deltas.insert(0, back * self.activation.slope(layers[k - 1]))
            back = deltas[0] @ params[f"W{k}"]
        terms = [jnp.sum(delta**2, axis=1) * square for delta, square in zip(deltas, squares[:-1], strict=True)]
        norms = sum(terms, squares[-1])
        if self.activation.piecewise_linear:
            return norms, jnp.zeros_like(norms)
        bends = jax.lax.map(lambda rows: self._bends(params, rows), layers)
        return norms, sum(
            (bend * square for bend, square in zip(bends, squares[:-1], strict=True)), jnp.zeros_like(norms)
        )

    def _bends(self, params: Params, layers: list[Array]) -> list[Array]:
        """tr ∂²f/∂h_l² of one example for each l, by recursion from the last layer to the first.

        ∂²f/∂h_l² = S Wᵀ(∂²f/∂h_{l+1}²)W S + diag(σ″ ∂f/∂a_l) with S = diag σ′, W = W_{l+1}. It is kept as a matrix plus
        a diagonal, so that depth 3 needs no matrix.
        """
        traces: list[Array] = []
        back, matrix, diagonal, W = params[f"W{self.depth}"], None, None, None
        for k in range(self.depth - 1, 0, -1):
            h = layers[k - 1]
            slope, own = self.activation.slope(h), self.activation.curvature(h) * back
            total = jnp.sum(own)
            if diagonal is not None and W is not None:
                total += jnp.sum(slope**2 * (diagonal @ W**2))
                if matrix is not None:
                    total += jnp.sum(slope**2 * jnp.sum(W * (matrix @ W), axis=0))
                if k > 1:
                    middle = jnp.diag(diagonal) if matrix is None else matrix + jnp.diag(diagonal)
                    matrix = slope[:, None] * (W.T @ middle @ W) * slope[None]
            traces.insert(0, total)
            diagonal, W = own, params[f"W{k}"]
            back = (back * slope) @ W if k > 1 else back
        return traces
