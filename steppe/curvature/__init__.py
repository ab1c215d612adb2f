"""Curvature as products with vectors: a kind of matrix, called with (problem, w), returns an `Operator`.

This room is the seam between measures and backends: only here does a measure meet JAX. A backend is a `Backend` of
`_backend.py`, registered for its kind of problem; it provides

1. `vector`, `reproducible` and `prepared`, w as a checked flat vector; `scores`, `loss_value` and `gradient` at it;
   `groups` of the examples, and `arrays`, the parts of w;
2. `operator` for `hessian`, `gauss_newton`, `residual`, `fisher` and `empirical_fisher`, and `smaller` for those with a
   Gram matrix: a `Product` with `size`, `dtype` and operator(v) for numpy vectors, computed with `statistics` and
   within `memory`;
3. `exact_traces`: whether exact traces are affordable, and their values as numpy numbers;
4. `increase`: L(w + step) − L(w) for batches of random steps, its rounding, and its largest value in a ball;
5. `kinks`: the kinks of the network near w, or `Kinks(())` if the backend cannot find them.

`_jax.py` is the backend of `steppe.Problem`, `steppe.torch` that of `steppe.torch.Problem`. Measures of parameters
alone (norms, distance) take `problem.unravel`; the invariant measures belong to `flattening`.
"""

from steppe._guard import exported as _exported
from steppe.curvature import _jax as _jax  # registers the backend of steppe.Problem
from steppe.curvature._backend import AnyProblem as AnyProblem
from steppe.curvature._backend import Backend as Backend
from steppe.curvature._backend import Product as Product
from steppe.curvature._backend import backend as backend
from steppe.curvature._matrices import empirical_fisher as empirical_fisher
from steppe.curvature._matrices import fisher as fisher
from steppe.curvature._matrices import gauss_newton as gauss_newton
from steppe.curvature._matrices import gram as gram
from steppe.curvature._matrices import hessian as hessian
from steppe.curvature._matrices import residual as residual
from steppe.curvature._operator import Curvature as Curvature
from steppe.curvature._operator import Operator as Operator
from steppe.curvature._statistics import Frozen as Frozen
from steppe.curvature._statistics import FullBatch as FullBatch
from steppe.curvature._statistics import PerChunk as PerChunk
from steppe.curvature._statistics import Statistics as Statistics

__dir__ = _exported(__name__)
