"""Networks: frozen callables `network(params, x)` with `init(d, rng)` for their parameters."""

from steppe.problems.networks.activations import Activation as Activation
from steppe.problems.networks.activations import relu as relu
from steppe.problems.networks.closed_form import ClosedForm as ClosedForm
from steppe.problems.networks.two_layer import TwoLayer as TwoLayer
