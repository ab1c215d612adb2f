"""What following the sharpness costs, counted: at most its share of the gradients."""

from steppe.bench import rates


def test_following_costs_at_most_its_share(monkeypatch):
    monkeypatch.setattr(rates, "EXAMPLES", 50)
    monkeypatch.setattr(rates, "WIDTH", 8)
    counted, timed = rates.measure()
    assert counted.unit == "gradients"
    # The looks at the end, which is always made, and just before it may overdraw by their own price.
    assert counted.ours <= (1 + rates.SHARE) * counted.theirs + 60
    assert timed.ratio > 0
