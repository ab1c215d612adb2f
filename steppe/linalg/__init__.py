"""Spectra, traces and diagonals of symmetric operators known by their products; each result carries its error.

An operator is a function v ↦ Av on float64 vectors of length p and that number: no matrix is formed. It may
compute in float32, on any device; see `Operator`.
"""

from steppe.linalg import dense as dense
from steppe.linalg.density import Density as Density
from steppe.linalg.density import spectral_density as spectral_density
from steppe.linalg.diagonal import Diagonal as Diagonal
from steppe.linalg.diagonal import diagonal as diagonal
from steppe.linalg.extreme import Eigenpair as Eigenpair
from steppe.linalg.extreme import largest as largest
from steppe.linalg.extreme import smallest as smallest
from steppe.linalg.extreme import spectral_norm as spectral_norm
from steppe.linalg.hutchinson import hutchinson as hutchinson
from steppe.linalg.hutchpp import hutchpp as hutchpp
from steppe.linalg.kuczynski import kuczynski_wozniakowski as kuczynski_wozniakowski
from steppe.linalg.lanczos import Tridiagonal as Tridiagonal
from steppe.linalg.lanczos import lanczos as lanczos
from steppe.linalg.one_thread import one_thread as one_thread
from steppe.linalg.operator import Matvec as Matvec
from steppe.linalg.operator import Operator as Operator
from steppe.linalg.operator import in_precision as in_precision
from steppe.linalg.probes import gaussian as gaussian
from steppe.linalg.probes import rademacher as rademacher
from steppe.linalg.probes import sphere as sphere
from steppe.linalg.top import Eigenpairs as Eigenpairs
from steppe.linalg.top import top_eigenpairs as top_eigenpairs
from steppe.linalg.tracker import Tracker as Tracker
from steppe.linalg.xtrace import xtrace as xtrace
