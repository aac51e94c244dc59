from windtunnel.launch.pace import Pace


def count_looks(pace: Pace, *, seconds: int, urgent: bool) -> int:
    return sum(pace.may_ask(float(second), urgent=urgent) for second in range(seconds))


def test_there_is_one_look_a_regular_interval() -> None:
    assert count_looks(Pace(30.0), seconds=600, urgent=False) == 20


def test_what_is_urgent_all_the_time_gets_at_most_twice_as_many_and_a_few() -> None:
    assert 20 < count_looks(Pace(30.0), seconds=600, urgent=True) <= 2 * 20 + 4


def test_the_first_urgent_looks_come_soon() -> None:
    pace = Pace(30.0)
    assert [second for second in range(20) if pace.may_ask(float(second), urgent=True)] == [0, 3, 6, 9, 12]


def test_a_short_interval_is_kept_even_when_urgent() -> None:
    pace = Pace(0.5)
    assert [pace.may_ask(at, urgent=True) for at in (0.0, 0.2, 0.5)] == [True, False, True]
