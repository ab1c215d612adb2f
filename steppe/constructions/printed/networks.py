"""Constructions of wen2023 as printed."""

from typing import Any

import numpy as np

from steppe.constructions import one_hot
from steppe.constructions._examples import Floats, Params, appended_norm, distinct
from steppe.constructions.arcs import arcs, unit
from steppe.constructions.generalising import sim_bn, sim_ln as _  # noqa: F401
