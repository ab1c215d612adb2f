"""The claims on networks: section 2 and appendix H."""

from steppe.experiments._paper import Claim
from steppe.papers.conflicting_biases.deferred import pair, runs

_N, _H7 = "networks_checks", "parameterisation_checks"

CLAIMS = (
    Claim("net-transition", "section 2", "Final sharpness leaves its plateau at η_c = 2/s_GF.",
          "corner/η_c within a factor 1.35", runs(_N, "at_the_critical_rate"), ("fig2", "fig3")),
    Claim("net-flow-aligned", "section 2.2", "Below η_c sharpness and norms of the end are the flow's, whatever η.",
          "spread < 5%", runs(_N, "constant_below"), ("fig2", "fig3")),
    Claim("net-edge", "section 2.2", "Above η_c the sharpness of the end follows 2/η.",
          "median ratio in [0.75, 1.15]", runs(_N, "follows"), ("fig2", "fig3")),
    Claim("net-norms-grow", "section 2.2", "… while ℓ1, ℓ2 and nuclear norm grow.",
          "rank correlation of ℓ1 > 0.3; each above its plateau", runs(_N, "norms_grow"), ("fig3",)),
    Claim("net-norms-agree", "Figure 9", "The three norms behave alike.", "rank correlation > 0.5",
          runs(_N, "norms_agree"), ("fig9",)),
    Claim("net-least-norm", "section 2.2", "Solutions of least norm never generalise best.", "ratio of test losses > 1",
          runs(_N, "least_norm_is_not_best"), ("fig3",)),
    Claim("net-u-shape", "Table 1", "Test loss is U-shaped in η or least at large η, never below η_c.",
          "all", runs(_N, "marks"), ("fig3",)),
    Claim("net-speed", "appendix H.8", "Below η_c the iterations needed go as 1/η.", "slope −1 within 0.1",
          runs(_N, "speed"), ("figI.8",)),
    Claim("net-speed-past", "appendix H.8", "Past η_c they fall more slowly.", "difference of slopes > 0.05",
          runs(_N, "slower_past_it"), ("figI.8",)),
    Claim("net-goal", "Figure 2", "A smaller loss goal moves η_c, and the transition, to smaller rates.", "ratio < 1",
          runs(_N, "moves_with_the_goal"), ("fig2",)),
    Claim("net-ce-falls", "appendix H.4", "With cross-entropy sharpness falls again after its time at the edge.",
          "last/largest < 0.7, and less than with squares", runs(_N, "cross_entropy_falls_again"), ("fig13",)),
    Claim("net-ce-edge", "appendix H.4", "… to which it had risen: its smoothed maximum follows 2/η past η_c.",
          "median ratio in [0.7, 1.4]", runs(_N, "rises_to_the_edge"), ("row-fcn-relu-mnist-5k-ce-0.01",)),
    Claim("net-distance", "Figure 11", "The distance to the flow's end grows with η, by more than the norm.",
          "ratio > 1", runs(_N, "away_from_the_flow"), ("fig11",)),
    Claim("net-layers", "Figure 14", "The ℓ2 norm of every layer is larger at the largest rate.", "growth > 0",
          runs(_N, "layers_grow"), ("fig14",)),
    Claim("net-measures", "Figure 10", "Trace, average adaptive sharpness and Fisher λ_max fall past η_c too.",
          "rank correlation < 0", runs(_N, "measures_fall"), ("fig10",)),
    *pair("net-kernel-outputs", "appendix H.7", "Kernel parameterisation, f = W_L h_L: NTK-like scaling.",
          "… f = W_L h_L/√n_L.", "outputs at the start ∝ n^p, |p| < 0.15", _H7, "outputs_of_kernel"),
    *pair("net-mup-features", "appendix H.7", "μP, f = W_L h_L/√n_L, stays in the feature-learning regime.",
          "… f = W_L h_L/n_L, with rates ∝ n.", "features move ∝ n^p, |p| < 0.15", _H7, "features_of_mup"),
)  # fmt: skip
