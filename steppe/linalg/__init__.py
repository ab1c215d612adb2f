"""Spectra, traces and diagonals of symmetric operators known by their products; each result carries its error.

An operator is a function v ↦ Av of float64 vectors, and their length p: no algorithm forms a matrix. The function may
compute in float32, on any device; see `Operator`.
"""

from steppe._guard import exported as _exported
from steppe.linalg import dense as dense
from steppe.linalg._bounds import kuczynski_wozniakowski as kuczynski_wozniakowski
from steppe.linalg._density import Density as Density
from steppe.linalg._density import spectral_density as spectral_density
from steppe.linalg._extreme import EIGENVALUE as EIGENVALUE
from steppe.linalg._extreme import Eigenpair as Eigenpair
from steppe.linalg._extreme import largest as largest
from steppe.linalg._extreme import smallest as smallest
from steppe.linalg._extreme import spectral_norm as spectral_norm
from steppe.linalg._lanczos import Tridiagonal as Tridiagonal
from steppe.linalg._lanczos import lanczos as lanczos
from steppe.linalg._operator import Matvec as Matvec
from steppe.linalg._operator import Operator as Operator
from steppe.linalg._operator import in_precision as in_precision
from steppe.linalg._probes import gaussian as gaussian
from steppe.linalg._probes import rademacher as rademacher
from steppe.linalg._probes import sphere as sphere
from steppe.linalg._threads import one_thread as one_thread
from steppe.linalg._top import Eigenpairs as Eigenpairs
from steppe.linalg._top import top_eigenpairs as top_eigenpairs
from steppe.linalg._trace import TRACE as TRACE
from steppe.linalg._trace import Diagonal as Diagonal
from steppe.linalg._trace import diagonal as diagonal
from steppe.linalg._trace import hutchinson as hutchinson
from steppe.linalg._trace import hutchpp as hutchpp
from steppe.linalg._trace import xtrace as xtrace
from steppe.linalg._tracker import Tracker as Tracker

__dir__ = _exported(__name__)
