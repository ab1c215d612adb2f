"""Numbers in, ink out: every figure is a function of plain JSON numbers."""

from steppe._exports import exported as _exported
from steppe.figures._diagonal import bifurcation as bifurcation
from steppe.figures._diagonal import diagonal as diagonal
from steppe.figures._diagonal import planes as planes
from steppe.figures._diagonal import simplex as simplex
from steppe.figures._flatness import correlations as correlations
from steppe.figures._flatness import flatness_loss as flatness_loss
from steppe.figures._flatness import rescaling as rescaling
from steppe.figures._flatness import spectrum as spectrum
from steppe.figures._panels import panels as panels
from steppe.figures._panels import rates as rates
from steppe.figures._panels import series as series
from steppe.figures._panels import table as table
from steppe.figures._step_sizes import interpolants as interpolants
from steppe.figures._step_sizes import second_derivatives as second_derivatives
from steppe.figures._step_sizes import sharpness_curves as sharpness_curves
from steppe.figures._step_sizes import smoothness as smoothness
from steppe.figures._step_sizes import two_trainings as two_trainings
from steppe.figures._style import png as png
from steppe.figures._style import save as save
from steppe.figures._training import memorising as memorising
from steppe.figures._training import neurons as neurons
from steppe.figures._training import training_curves as training_curves

__dir__ = _exported(__name__)
