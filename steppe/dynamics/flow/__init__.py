"""Gradient flow w′ = −∇L(w), the limit of gradient descent as the rate goes to 0."""

from steppe.dynamics.flow.flow import Flow as Flow
from steppe.dynamics.flow.method import Method as Method
from steppe.dynamics.flow.rk4 import RK4 as RK4
from steppe.dynamics.flow.rkc2 import RKC2 as RKC2
