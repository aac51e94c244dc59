import pytest

from windtunnel.errors import StudyError
from windtunnel.launch.roster import Row
from windtunnel.launch.seek import find_row, find_rows

ROWS = (
    Row("abc0000000000000", "tcn single", 10, 1, 60),
    Row("abd0000000000000", "tcn single fp32", 10, 1, 60),
    Row("f000000000000000", "transformer", 10, 1, 60),
)


@pytest.mark.parametrize(
    ("word", "index"),
    [("abc", 0), ("ABD", 1), ("f", 2), ("tcn single", 0), ("fp32", 1), ("transf", 2), ("abd0000000000000", 1)],
)
def test_an_id_its_beginning_or_a_name_finds_a_trial(word, index):
    assert find_row(ROWS, word, where="study s") == ROWS[index]


def test_what_may_be_several_is_refused_with_the_candidates():
    with pytest.raises(StudyError, match=r"'ab' of study s may be any of 2: abc0+ \(tcn single\), abd0+ .*an id"):
        find_row(ROWS, "ab", where="study s")


def test_all_unknown_words_are_told_in_one_error():
    with pytest.raises(StudyError, match=r"(?s)'x1' is not in study s; it has 3: abc0.*'x2' is not"):
        find_rows(ROWS, ["x1", "abc", "x2"], where="study s")


def test_a_trial_that_is_named_twice_counts_once():
    assert find_rows(ROWS, ["abc", "tcn single", "f"], where="study s") == (ROWS[0], ROWS[2])
