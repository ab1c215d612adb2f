"""The gradient of a convolution in its kernel as a product of matrices: patches of the input times signals."""

from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from steppe.measures.equations import Equation


def is_plain(equation: Equation) -> bool:
    """A convolution whose filters see all channels."""
    groups = ("feature_group_count", "batch_group_count")
    return equation.primitive.name == "conv_general_dilated" and all(equation.params[name] == 1 for name in groups)


def kernel_gradients(equation: Equation, image: Array, signals: Array) -> Array:
    """(k, *kernel): the gradients for k signals at the output, for one example.

    Autodiff makes a convolution with the signals as filters of it, which XLA does several times slower on a CPU.

    >>> from steppe.measures.equations import traced
    >>> one = jnp.ones((1, 1, 2, 2))
    >>> (equation,) = traced(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), one, one).jaxpr.eqns
    >>> kernel_gradients(equation, one, jnp.ones((1, 1, 1, 2, 2)))[0, 0, 0].tolist()   # 4 pixels, 2, 2 and 1 under it
    [[4.0, 2.0], [2.0, 1.0]]
    """
    numbers = equation.params["dimension_numbers"]
    kernel, leaving = equation.invars[1].aval.shape, equation.outvars[0].aval.shape
    window, out = ([shape[axis] for axis in spec[2:]] for shape, spec in
                   ((kernel, numbers.rhs_spec), (leaving, numbers.out_spec)))  # fmt: skip
    patches = _patches(equation.params, jnp.transpose(image, numbers.lhs_spec), window, out)
    rows = jnp.transpose(signals, (0, *(axis + 1 for axis in numbers.out_spec)))
    k, filters, channels = len(signals), leaving[numbers.out_spec[1]], kernel[numbers.rhs_spec[1]]
    # (window · channels, positions) × (positions, k · filters)
    found = patches.reshape(-1, int(np.prod(out))) @ rows.reshape(k * filters, -1).T
    found = found.reshape(*window, channels, k, filters)
    back = len(window)
    # To (k, filters, channels, *window), and from there to the kernel's own order.
    found = jnp.transpose(found, (back + 1, back + 2, back, *range(back)))
    return jnp.transpose(found, (0, *(1 + int(axis) for axis in np.argsort(numbers.rhs_spec))))


def _patches(params: Any, image: Array, window: list[int], out: list[int]) -> Array:
    """(∏ window, channels, *out): what each entry of the kernel is multiplied by, of an image (1, channels, *space)."""
    edges = [(low, high, dilation - 1) for (low, high), dilation in
             zip(params["padding"], params["lhs_dilation"], strict=True)]  # fmt: skip
    padded = jax.lax.pad(image[0], jnp.zeros((), image.dtype), [(0, 0, 0), *edges])
    strides = params["window_strides"]

    def seen(offset: tuple[int, ...]) -> Array:
        starts = [i * dilation for i, dilation in zip(offset, params["rhs_dilation"], strict=True)]
        stops = [start + (size - 1) * stride + 1 for start, size, stride in zip(starts, out, strides, strict=True)]
        return jax.lax.slice(padded, (0, *starts), (len(padded), *stops), (1, *strides))

    return jnp.stack([seen(offset) for offset in product(*map(range, window))])
