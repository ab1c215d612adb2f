"""The audit of one's own network: everything that steppe measures, in one call, and what follows from it.

`audit` measures and returns an `Audit`; `compare` puts several side by side. Every number has its interval, its cost
and, where the examples can be taken apart, the spread that other examples would bring. A part that fails or does not
apply is a row that says why.
"""

from steppe._guard import exported as _exported
from steppe.auditing._checkpoint import at as at
from steppe.auditing._compare import Comparison as Comparison
from steppe.auditing._compare import compare as compare
from steppe.auditing._edge import Adam as Adam
from steppe.auditing._edge import Edge as Edge
from steppe.auditing._example import example as example
from steppe.auditing._measure import audit as audit
from steppe.auditing._result import Audit as Audit
from steppe.auditing._result import Block as Block
from steppe.auditing._result import Check as Check
from steppe.auditing._result import Row as Row

__dir__ = _exported(__name__)
