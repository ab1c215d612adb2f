"""Following the sharpness costs at most its share of the gradients."""

from bench import rates
from steppe import data, losses, networks
from steppe.networks import build


def test_following_costs_at_most_its_share(monkeypatch):
    tiny = build(networks.FCN((8, 8)), data.digits(50, test=1), losses.half_mse).train
    monkeypatch.setattr(rates, "_problem", lambda: (tiny, "digits-50"))
    counted, timed, parts = rates.measure()
    assert counted.unit == "gradients"
    # The last two measurements may exceed the share by what they cost: the one at the end is always made.
    assert counted.ours <= (1 + rates.SHARE) * counted.theirs + 60
    assert timed.ratio > 0
    assert parts.theirs > timed.theirs  # the steps alone are less than the steps and the products
