"""The scale groups of a torch module: its ATen operations, read as `steppe.flattening` reads the equations of JAX."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from steppe import check
from steppe.flattening._scales import FREE, STILL, Groups, Held, Indices, Scaled, Scales, Token
from steppe.torch._data import Batch, mapped, tensors
from steppe.torch._problem import Problem

aten = torch.ops.aten

# Examples of the pass that is recorded.
_READ = 2

_COMPOSED = (
    aten.native_layer_norm, aten.native_group_norm, aten.native_batch_norm, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit_no_training,
    aten._native_batch_norm_legit.no_stats, aten._batch_norm_with_update, aten._batch_norm_no_update, aten.addmm,
    aten.baddbmm, aten.std, aten.linalg_vector_norm, aten.hardtanh, aten.leaky_relu, aten.prelu, aten._prelu_kernel,
    aten.threshold, aten.var_mean, aten.rms_norm, aten._fused_rms_norm, aten.masked_fill, aten.addcmul,
)  # fmt: skip


def scale_groups(problem: Problem, w: np.ndarray) -> Groups:
    """The scale groups of the network of a problem."""
    graph, leaves, constants = _recorded(problem, w)
    sizes = [int(np.prod(leaf.shape)) for leaf in leaves]
    ends = np.cumsum([0, *sizes])
    scales = Scales(int(ends[-1]))
    inputs: list[Token] = [
        Held(np.arange(start, stop).reshape(tuple(leaf.shape)))
        for start, stop, leaf in zip(ends, ends[1:], leaves, strict=False)
    ]
    inputs += [Scaled(_still(tuple(t.shape))) for t in constants]
    outputs = _Reader(graph, scales).run(*inputs)
    scales.still(*tensors_of(outputs))
    return scales.groups()


def tensors_of(tree: Any) -> list[Any]:
    return [a for a in torch.utils._pytree.tree_leaves(tree) if isinstance(a, Held | Scaled)]


def _recorded(problem: Problem, w: np.ndarray) -> tuple[fx.GraphModule, list[Tensor], list[Tensor]]:
    """The operations of a pass over a few examples, as a function of the parameters and of the data."""
    network, batch = problem.network, problem.few
    batch = (batch.rows(0, min(_READ, batch.size)) if problem.apart else batch).each(network.ready)
    leaves = [leaf.detach() for leaf in network.leaves(w)]
    given = list(tensors((batch.args, batch.kwargs)))

    def run(*flat: Tensor) -> Any:
        rows = iter(flat[len(leaves) :])

        def filled(tree: Any) -> Any:
            return mapped(lambda a: next(rows) if isinstance(a, Tensor) else a, tree)

        moved = Batch(filled(batch.args), filled(batch.kwargs), None, batch.size)
        with network.at(flat[: len(leaves)]), torch.no_grad():
            return list(tensors(network(moved.args, moved.kwargs)))

    table = {**core_aten_decompositions(), **get_decompositions(_COMPOSED)}
    try:
        graph = make_fx(torch.func.functionalize(run, remove="mutations_and_views"), table)(*leaves, *given)
    except Exception as error:
        remedy = "Pass layers=[steppe.flattening.Neurons(into=..., out=...), ...] for the neurons that can be rescaled."
        check.refuse("model", "one that torch.fx can record", f"{type(error).__name__}: {error}", remedy)
    return graph, leaves, given


class _Reader(fx.Interpreter):  # type: ignore[misc]
    """Runs the graph on log-scales; what depends on no input is computed."""

    def __init__(self, graph: fx.GraphModule, scales: Scales):
        super().__init__(graph)
        self.scales = scales

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        tokens = tensors_of((args, kwargs))
        if not tokens:
            return super().call_function(target, args, kwargs)
        if "getitem" in getattr(target, "__name__", ""):
            return args[0][args[1]]
        name = _name(target)
        if name in _MOVES:
            return self._moved(target, args, kwargs)
        rule = _RULES.get(name)
        shape = self._shapes(self.current)
        ids = None if rule is None else rule(self.scales, list(args), kwargs)
        if ids is None:
            self.scales.still(*tokens)
            return _each(lambda s: Scaled(_still(s)), shape)
        if isinstance(shape, list):
            # Only the first result of an operation with several, such as the values of a maximum, has a scale.
            return [Scaled(np.broadcast_to(ids if k == 0 else _still(()), s)) for k, s in enumerate(shape)]
        return Scaled(np.broadcast_to(ids, shape))

    def run_node(self, n: fx.Node) -> Any:
        self.current = n
        return super().run_node(n)

    def _shapes(self, node: fx.Node) -> Any:
        return _each(lambda t: tuple(t.shape), _listed(node.meta["val"]))

    def _moved(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The operation itself, on the numbers of parameters or forms."""
        held = all(isinstance(a, Held) for a in tensors_of((args, kwargs)))

        def numbers(a: Any) -> Any:
            if isinstance(a, Held):
                return _tensor(a.entries if held else self.scales.read(a))
            if isinstance(a, Scaled):
                return _tensor(a.ids)
            real = isinstance(a, Tensor) and a.is_floating_point()
            return _tensor(self.scales.read(a.cpu().numpy())) if real else a

        # Numbers that repeat are not stored as the activations are: a view of them may not exist.
        run = torch.reshape if _name(target) == "view" else target
        found = run(*torch.utils._pytree.tree_map(numbers, args), **kwargs)
        kind = Held if held else Scaled
        return _each(lambda t: kind(t.numpy()), _listed(found))


def _name(target: Any) -> str:
    """For instance "select" for aten.select_copy.int: without views, each view is a copy."""
    packet = getattr(target, "overloadpacket", target)
    return getattr(packet, "__name__", str(packet)).removesuffix("_copy").removeprefix("_unsafe_")


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _each(f: Callable[[Any], Any], value: Any) -> Any:
    return [f(a) for a in value] if isinstance(value, list) else f(value)


def _tensor(numbers: Indices) -> Tensor:
    # PyTorch takes no negative strides, and warns of arrays that are read-only.
    writable = np.lib.stride_tricks.as_strided(np.array(numbers) if min(numbers.strides, default=0) < 0 else numbers)
    return torch.from_numpy(writable if writable.flags.writeable else np.array(writable))


def _still(shape: Sequence[int]) -> Indices:
    return np.broadcast_to(np.full((), STILL), tuple(shape))


_MOVES = frozenset({
    "view", "reshape", "broadcast_in_dim", "permute", "transpose", "t", "expand", "squeeze", "unsqueeze", "slice",
    "select", "split", "split_with_sizes", "unbind", "cat", "stack", "flip", "roll", "repeat", "clone", "detach",
    "alias", "contiguous", "unfold", "as_strided", "diagonal", "slice_scatter", "select_scatter", "lift_fresh",
    "_reshape", "_reshape_alias", "movedim",
})  # fmt: skip


# What each other operation does to log-scales: the forms of its output, or None if it is homogeneous in nothing.

Rule = Callable[[Scales, list[Any], Any], Indices | None]


def _token(a: Any) -> Any:
    return a if isinstance(a, Held | Scaled) else np.asarray(a.cpu() if isinstance(a, Tensor) else a, dtype=_real(a))


def _real(a: Any) -> Any:
    """A number in an operation with activations is real."""
    return float if isinstance(a, int | float) and not isinstance(a, bool) else None


def _shape(a: Any) -> tuple[int, ...]:
    a = _token(a)
    return a.entries.shape if isinstance(a, Held) else a.ids.shape if isinstance(a, Scaled) else a.shape


def _as_token(a: Any) -> Token:
    return a if isinstance(a, Held | Scaled) else Scaled(_still(_shape(a)))


def _like(token: Token, array: Indices) -> Token:
    return Held(array) if isinstance(token, Held) else Scaled(array)


def _array(token: Token) -> Indices:
    return token.entries if isinstance(token, Held) else token.ids


def _same(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    return scales.same(*(_token(a) for a in args[:2]))


def _alone(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    return scales.read(args[0])


def _clamped(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    ends = [*args[1:], *kwargs.values()]
    return scales.same(args[0], *(_token(a) for a in ends if a is not None))


def _signs(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    scales.same(*(_token(a) for a in args[:2]))
    return _still(())


def _chosen(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    if isinstance(args[0], Held | Scaled):
        scales.still(args[0])
    return scales.same(*(_token(a) for a in args[1:]))


def _times(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    return scales.times(_token(args[0]), _token(args[1]))


def _over(scales: Scales, args: list[Any], kwargs: Any) -> Indices | None:
    return None if kwargs.get("rounding_mode") else scales.times(_token(args[0]), _token(args[1]), -1.0)


def _power(power: float) -> Rule:
    return lambda scales, args, kwargs: scales.power(args[0], power)


def _raised(scales: Scales, args: list[Any], kwargs: Any) -> Indices | None:
    base, power = args[:2]
    if isinstance(power, Held | Scaled) or np.size(_token(power)) != 1 or not isinstance(base, Held | Scaled):
        return None
    return scales.power(base, float(np.asarray(_token(power)).reshape(())))


def _axes(a: Any, dim: Any) -> tuple[int, ...]:
    rank = len(_shape(a))
    dims = range(rank) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    return tuple(d % rank for d in dims)


def _reduced(degree: float = 1.0) -> Rule:
    """A sum, a mean, a maximum or, of degree 2, a variance."""

    def rule(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
        axes = _axes(args[0], args[1] if len(args) > 1 else kwargs.get("dim"))
        keep = any(a is True for a in args[2:]) or kwargs.get("keepdim", False)
        ids = scales.tie(args[0], axes)
        ids = ids if keep else ids.squeeze(axes)
        return ids if degree == 1 else scales.power(Scaled(ids), degree)

    return rule


def _ranked(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    scales.tie(args[0], _axes(args[0], args[1] if len(args) > 1 else None))
    return _still(())


def _accumulated(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    return scales.tie(args[0], _axes(args[0], args[1]))


def _pooled(space: int) -> Rule:
    """A sum, a maximum or an interpolation over the last axes."""

    def rule(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
        rank = len(_shape(args[0]))
        axes = range(rank - space, rank)
        ids = scales.tie(args[0], tuple(axes))
        return ids[tuple(slice(0, 1) if k in axes else slice(None) for k in range(rank))]

    return rule


def _padded(scales: Scales, args: list[Any], kwargs: Any) -> Indices | None:
    value = args[2] if len(args) > 2 else 0
    if value not in (0, None) or min(args[1]) < 0:
        return None
    ids = scales.read(args[0])
    pairs = [(0, 0)] * (ids.ndim - len(args[1]) // 2) + list(zip(args[1][::2], args[1][1::2], strict=True))[::-1]
    return np.pad(ids, pairs, constant_values=-1)


def _matrices(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    a, c = (_as_token(t) for t in args[:2])
    left, right = _array(a), _array(c)
    vector = right.ndim == 1
    right = right[:, None] if vector else right
    whole = [m if m.ndim == 3 else m[None] for m in (left if left.ndim > 1 else left[None], right)]
    ids = scales.contract(_like(a, whole[0]), _like(c, whole[1]))
    ids = ids if left.ndim == 3 else ids[0]
    ids = ids[..., 0] if vector else ids
    return ids if left.ndim > 1 else ids[0]


def _convolution(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    image, kernel, bias, _, _, _, transposed, _, groups = args[:9]
    image, kernel = _as_token(image), _as_token(kernel)
    rank, count = len(_shape(kernel)), _shape(image)[1]
    channels = scales.tie(image, (0, *range(2, rank))).reshape(-1)
    entries = _array(kernel)
    if transposed:  # (in, out/groups, …) with the inputs of each group together
        inner = entries.reshape(groups, count // groups, *entries.shape[1:])
        entries = inner.swapaxes(1, 2).reshape(-1, count // groups, *entries.shape[2:])
    out = scales.convolve(np.broadcast_to(channels, count), _like(kernel, entries), groups)
    out = out.reshape(1, -1, *[1] * (rank - 2))
    if bias is None:
        return out
    added = _as_token(bias)
    return scales.same(Scaled(out), _like(added, _array(added).reshape(out.shape)))


def _embedded(scales: Scales, args: list[Any], kwargs: Any) -> Indices:
    return scales.tie(args[0], (0,))[0]


def _indexed(scales: Scales, args: list[Any], kwargs: Any) -> Indices | None:
    """x[i, j, …] with known indices moves entries."""
    index = args[1]
    if any(isinstance(i, Held | Scaled) for i in index):
        return None
    ids = scales.read(args[0])
    return _tensor(ids)[tuple(slice(None) if i is None else i for i in index)].numpy()


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("add", "sub", "rsub", "maximum", "minimum"), _same),
    **dict.fromkeys(("relu", "abs", "neg", "_to"), _alone),
    **dict.fromkeys(("clamp", "clamp_min", "clamp_max"), _clamped),
    **dict.fromkeys(("gt", "ge", "lt", "le", "eq", "ne"), _signs),
    **dict.fromkeys(("sign", "isnan", "isinf", "full_like", "ones_like"), lambda scales, args, kwargs: _still(())),
    "zeros_like": lambda scales, args, kwargs: np.full((), FREE),
    "where": _chosen,
    "mul": _times,
    "div": _over,
    "square": _power(2.0),
    "sqrt": _power(0.5),
    "rsqrt": _power(-0.5),
    "reciprocal": _power(-1.0),
    "pow": _raised,
    **dict.fromkeys(("sum", "mean", "amax", "amin", "max", "min"), _reduced()),
    "var": _reduced(2.0),
    **dict.fromkeys(("argmax", "argmin"), _ranked),
    **dict.fromkeys(("cumsum", "cummax"), _accumulated),
    **dict.fromkeys(("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "adaptive_max_pool2d",
                     "upsample_nearest2d", "upsample_bilinear2d"), _pooled(2)),
    **dict.fromkeys(("avg_pool1d", "_adaptive_avg_pool1d", "upsample_nearest1d"), _pooled(1)),
    **dict.fromkeys(("max_pool3d_with_indices", "avg_pool3d", "_adaptive_avg_pool3d"), _pooled(3)),
    "constant_pad_nd": _padded,
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "matmul"), _matrices),
    "convolution": _convolution,
    "embedding": _embedded,
    "index": _indexed,
}  # fmt: skip
