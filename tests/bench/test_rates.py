"""What following the sharpness costs, counted: at most its share of the gradients."""

from steppe import data, losses, networks
from steppe.bench import rates
from steppe.networks import build


def test_following_costs_at_most_its_share(monkeypatch):
    tiny = build(networks.FCN((8, 8)), data.digits(50, test=1), losses.half_mse).train
    monkeypatch.setattr(rates, "_problem", lambda: tiny)
    counted, timed, parts = rates.measure()
    assert counted.unit == "gradients"
    # The looks at the end, which is always made, and just before it may overdraw by their own price.
    assert counted.ours <= (1 + rates.SHARE) * counted.theirs + 60
    assert timed.ratio > 0
    assert parts.theirs > timed.theirs  # the steps alone are less than the steps and the products
