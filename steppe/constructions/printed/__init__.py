"""The formulas of wen2023 as printed, where they are wrong: each fails a test that its mended twin passes."""

from steppe.constructions.printed.formulas import fourth_moment as fourth_moment
from steppe.constructions.printed.formulas import logistic_curvature as logistic_curvature
from steppe.constructions.printed.formulas import logistic_loss as logistic_loss
from steppe.constructions.printed.formulas import long_probability as long_probability
from steppe.constructions.printed.formulas import sim_bn_norms as sim_bn_norms
from steppe.constructions.printed.formulas import zero_one as zero_one
from steppe.constructions.printed.networks import circle as circle
from steppe.constructions.printed.networks import circle_arcs as circle_arcs
from steppe.constructions.printed.networks import deep as deep
from steppe.constructions.printed.networks import junta as junta
from steppe.constructions.printed.networks import sim_bn_xor as sim_bn_xor
from steppe.constructions.printed.networks import sim_ln as sim_ln
from steppe.constructions.printed.networks import xor as xor
