"""The theory of wen2023, with numpy and scipy alone: it shares no code with the measures that it is an oracle for.

`bounds`: least traces. `generalising`: flattest nets that generalise (those that memorise are in `steppe.flattening`).
`deep_no_bias`: both kinds from three layers on. `complexity`: constants of the appendix. `printed`: what is wrong as
printed, as printed.
"""

from steppe.papers.wen2023.theory import bounds as bounds
from steppe.papers.wen2023.theory import complexity as complexity
from steppe.papers.wen2023.theory import deep_no_bias as deep_no_bias
from steppe.papers.wen2023.theory import generalising as generalising
from steppe.papers.wen2023.theory import printed as printed
