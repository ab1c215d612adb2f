"""The least trace and the least λ_max of M(t) = Σ_k e^{−2(At)_k} j_k j_kᵀ over t: convex problems, certified."""

from steppe.linalg.rescaling.balance import balance as balance
from steppe.linalg.rescaling.balance import circulating as circulating
from steppe.linalg.rescaling.balance import lower_bound as lower_bound
from steppe.linalg.rescaling.compressed import compressed as compressed
from steppe.linalg.rescaling.compressed import merged as merged
from steppe.linalg.rescaling.rescaling import OUTSIDE as OUTSIDE
from steppe.linalg.rescaling.rescaling import Floats as Floats
from steppe.linalg.rescaling.rescaling import Rescaling as Rescaling
from steppe.linalg.rescaling.rescaling import exponents as exponents
from steppe.linalg.rescaling.solve import Flattest as Flattest
from steppe.linalg.rescaling.solve import flattest as flattest
from steppe.linalg.rescaling.tracked import Jacobian as Jacobian
from steppe.linalg.rescaling.tracked import Tracked as Tracked
from steppe.linalg.rescaling.tracked import tracked as tracked
