"""Numbers in, ink out: every figure is a function of plain JSON numbers."""

from steppe.figures.files import save as save
from steppe.figures.spectrum import spectrum as spectrum
from steppe.figures.training import training_curves as training_curves
