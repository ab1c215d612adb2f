"""The theory of the diagonal network and of two points, with numpy and scipy alone.

`manifold`: the interpolators of one example. `flow`: gradient flow in closed form. `kkt`: least risk at bounded
sharpness. `risks`: expected risks. `two_points`: the logistic loss. `other_models`: beyond the paper. `printed`: the
formulas that are wrong as printed.
"""
