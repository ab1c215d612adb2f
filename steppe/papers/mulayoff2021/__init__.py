"""Mulayoff, Michaeli and Soudry 2021: how the step size shapes the function at which gradient descent ends."""

from steppe.papers.mulayoff2021 import figures as figures
from steppe.papers.mulayoff2021 import theorems as theorems
from steppe.papers.mulayoff2021.descent import PAPER as PAPER
