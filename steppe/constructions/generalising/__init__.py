"""The flattest interpolators that have learned the rule: a few neurons, right on inputs never seen (wen2023)."""

from steppe.constructions.generalising.circle import circle as circle
from steppe.constructions.generalising.junta import junta as junta
from steppe.constructions.generalising.junta import parity as parity
from steppe.constructions.generalising.junta import xor as xor
from steppe.constructions.generalising.no_bias import no_bias_xor as no_bias_xor
from steppe.constructions.generalising.sim_bn import sim_bn_xor as sim_bn_xor
from steppe.constructions.generalising.sim_ln import sim_ln_junta as sim_ln_junta
from steppe.constructions.generalising.sim_ln import sim_ln_xor as sim_ln_xor
