"""Gradient flow by explicit methods with error control."""

from steppe.dynamics._flow.flow import Flow as Flow
from steppe.dynamics._flow.method import AB2 as AB2
from steppe.dynamics._flow.method import RK4 as RK4
from steppe.dynamics._flow.method import RKC2 as RKC2
from steppe.dynamics._flow.method import Method as Method
