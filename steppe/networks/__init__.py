"""Networks: frozen callables `network(params, x)` that draw their own initial parameters with `init`."""

from steppe._guard import exported as _exported
from steppe.networks._architecture import Architecture as Architecture
from steppe.networks._architecture import Built as Built
from steppe.networks._architecture import build as build
from steppe.networks._convolutional import CNN as CNN
from steppe.networks._convolutional import ResNet as ResNet
from steppe.networks._convolutional import convolution as convolution
from steppe.networks._diagonal import diagonal_problem as diagonal_problem
from steppe.networks._diagonal import two_factor_problem as two_factor_problem
from steppe.networks._fcn import FCN as FCN
from steppe.networks._layers import Parameterisation as Parameterisation
from steppe.networks._layers import Scaled as Scaled
from steppe.networks._layers import kernel as kernel
from steppe.networks._layers import mup as mup
from steppe.networks._layers import standard as standard
from steppe.networks._mlp import MLP as MLP
from steppe.networks._mlp import ClosedForm as ClosedForm
from steppe.networks._mlp import OneHidden as OneHidden
from steppe.networks._mlp import TwoLayer as TwoLayer
from steppe.networks._normalised import BatchNorm as BatchNorm
from steppe.networks._normalised import LayerNorm as LayerNorm
from steppe.networks._normalised import SimBN as SimBN
from steppe.networks._normalised import SimLN as SimLN
from steppe.networks._normalised import TrainingInputs as TrainingInputs
from steppe.networks._transformer import Transformer as Transformer
from steppe.networks._transformer import ViT as ViT
from steppe.networks._transformer import vit_cifar as vit_cifar
from steppe.networks._transformer import vit_mnist as vit_mnist

__dir__ = _exported(__name__)
