import pytest

from windtunnel.cost import Cost, add_costs, format_money, format_node_hours, price


def test_an_unpriced_node_costs_node_hours_alone():
    cost = price(7200, per_node_hour=0.0, currency="USD")
    assert cost == Cost(2.0, None, "USD")
    assert str(cost) == "2 node-hours"


def test_a_priced_node_costs_money_too():
    assert price(1800, per_node_hour=3.0, currency="EUR") == Cost(0.5, 1.5, "EUR")
    assert str(price(1800, per_node_hour=3.0, currency="EUR")) == "0.5 node-hours (1.50 EUR)"


def test_sums_keep_money_only_when_every_part_has_it():
    priced, unpriced = price(3600, per_node_hour=2, currency="USD"), price(3600, per_node_hour=0, currency="USD")
    assert add_costs([priced, priced], currency="USD") == Cost(2.0, 4.0, "USD")
    assert add_costs([priced, unpriced], currency="USD") == Cost(2.0, None, "USD")
    with pytest.raises(ValueError, match="convert"):
        add_costs([priced], currency="EUR")


def test_negative_use_is_refused():
    with pytest.raises(ValueError, match="0 or more"):
        price(-1, per_node_hour=1, currency="USD")


@pytest.mark.parametrize(
    ("hours", "text"),
    [(0, "0"), (0.00042, "0.00042"), (3.6e-6, "0.000004"), (1e-9, "<0.000001"), (1.254, "1.25"), (310.4, "310")],
)
def test_node_hours_keep_the_digits_that_matter(hours, text):
    assert format_node_hours(hours) == text


@pytest.mark.parametrize(("amount", "text"), [(0, "0.00 USD"), (0.0031, "0.0031 USD"), (1234.5, "1,234.50 USD")])
def test_small_sums_of_money_stay_visible(amount, text):
    assert format_money(amount, "USD") == text
