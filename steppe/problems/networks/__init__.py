"""Networks: frozen callables `network(params, x)` with `init(d, width, rng)` for their parameters."""

from steppe.problems.networks.activations import Activation as Activation
from steppe.problems.networks.activations import leaky_relu as leaky_relu
from steppe.problems.networks.activations import relu as relu
from steppe.problems.networks.activations import softplus as softplus
from steppe.problems.networks.activations import tanh as tanh
from steppe.problems.networks.batch_norm import BatchNorm as BatchNorm
from steppe.problems.networks.closed_form import ClosedForm as ClosedForm
from steppe.problems.networks.homogeneous import Homogeneous as Homogeneous
from steppe.problems.networks.layer_norm import LayerNorm as LayerNorm
from steppe.problems.networks.mlp import MLP as MLP
from steppe.problems.networks.one_hidden import OneHidden as OneHidden
from steppe.problems.networks.sim_bn import SimBN as SimBN
from steppe.problems.networks.sim_ln import SimLN as SimLN
from steppe.problems.networks.training_inputs import TrainingInputs as TrainingInputs
from steppe.problems.networks.two_layer import TwoLayer as TwoLayer
