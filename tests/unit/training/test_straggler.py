from windtunnel.training.straggler import find_stragglers


def test_a_rank_a_third_slower_than_the_usual_is_found_with_its_ratio():
    assert find_stragglers([0.010, 0.011, 0.0101, 0.014]) == {3: 0.014 / 0.0101}


def test_of_two_ranks_the_slower_one_is_the_straggler():
    assert list(find_stragglers([0.020, 0.010])) == [0]


def test_small_differences_and_tiny_steps_are_noise():
    assert find_stragglers([0.010, 0.012, 0.010]) == {}
    assert find_stragglers([0.0002, 0.0019]) == {}
    assert find_stragglers([0.5]) == {}
