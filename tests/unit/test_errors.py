"""The error tree."""

import re

from windtunnel import errors


def _drawn() -> dict[str, str]:
    """Class to parent, as the docstring draws them."""
    parents: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.fullmatch(r"([ │├└─]*)([A-Z]\w+Error)", line)
        if match:
            depth = len(match[1])
            stack = [entry for entry in stack if entry[0] < depth]
            parents[match[2]] = stack[-1][1] if stack else "Exception"
            stack.append((depth, match[2]))
    return parents


def test_the_drawing_equals_the_classes():
    classes = {
        name: value.__mro__[1].__name__
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert _drawn() == classes


def test_a_users_mistake_exits_with_2_and_is_a_value_error():
    assert errors.LayoutError.exit_code == 2
    assert issubclass(errors.LayoutError, ValueError)
    assert errors.CommandError.exit_code == 1
