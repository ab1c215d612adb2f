"""Numbers in, ink out: every figure is a function of plain JSON numbers."""

from steppe.figures.bifurcation import bifurcation as bifurcation
from steppe.figures.diagonal import diagonal as diagonal
from steppe.figures.files import save as save
from steppe.figures.interpolants import interpolants as interpolants
from steppe.figures.interpolants import second_derivatives as second_derivatives
from steppe.figures.interpolants import two_trainings as two_trainings
from steppe.figures.memorising import memorising as memorising
from steppe.figures.neurons import neurons as neurons
from steppe.figures.panels import panels as panels
from steppe.figures.plane import planes as planes
from steppe.figures.rates import rates as rates
from steppe.figures.rescaling import rescaling as rescaling
from steppe.figures.simplex import simplex as simplex
from steppe.figures.spectrum import spectrum as spectrum
from steppe.figures.step_sizes import sharpness_curves as sharpness_curves
from steppe.figures.step_sizes import smoothness as smoothness
from steppe.figures.table import table as table
from steppe.figures.training import training_curves as training_curves
