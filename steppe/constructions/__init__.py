"""WHAT theory predicts, without training: lower bounds, explicit minimisers, complexity curves. numpy and scipy only.

Parameters are plain dicts of float64 arrays, ready for a problem of the same architecture:

| architecture | keys |
| --- | --- |
| two-layer | `W1` (m, d), `b1` (m,) unless there is no bias, `W2` (m,) |
| depth D | `W1` (m, d), `b1` (m,), `W2` … `W{D−1}` (m, m), `WD` (m,) |
| Sim-BN | `W1`, `b1`, `gamma` (m,), `W2`; statistics over the training set |
| Sim-LN | `W1`, `b1`, `W2`; ε is the network's |

Every trace is that of the Hessian of the mean of squares, without ½. `printed` holds the paper's formulas where they
are wrong, so that the claim "fails as printed" can be computed.
"""

from steppe.constructions import bounds as bounds
from steppe.constructions import diagonal as diagonal
from steppe.constructions import flattest as flattest
from steppe.constructions import function_space as function_space
from steppe.constructions import generalising as generalising
from steppe.constructions import memorising as memorising
from steppe.constructions import moments as moments
from steppe.constructions import printed as printed
from steppe.constructions import rademacher as rademacher
from steppe.constructions import separating as separating
from steppe.constructions import smoothing as smoothing
from steppe.constructions import stability as stability
from steppe.constructions.completeness import tails as tails
from steppe.constructions.norm_constants import NormConstants as NormConstants
from steppe.constructions.norm_constants import norm_constants as norm_constants
from steppe.constructions.norm_constants import path_norm as path_norm
from steppe.constructions.norm_constants import squared_norms as squared_norms
from steppe.constructions.widen import widen as widen
