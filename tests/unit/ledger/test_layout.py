from pathlib import Path

from windtunnel.ledger.layout import TrialFolder, read_attempt_numbers, trial_folder, write_next_attempt


def test_attempts_count_from_one_and_past_what_is_there(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    assert [write_next_attempt(folder) for _ in range(2)] == [1, 2]
    folder.attempt(10).mkdir()
    assert write_next_attempt(folder) == 11
    assert read_attempt_numbers(folder) == [1, 2, 10, 11]


def test_strange_names_are_no_attempts(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    for name in ("0", "old", "1.bak"):
        folder.attempts.joinpath(name).mkdir(parents=True)
    assert read_attempt_numbers(folder) == []


def test_a_trials_folder_is_named_by_its_id(tmp_path: Path) -> None:
    assert trial_folder(tmp_path, "ab12").done == tmp_path / "trials" / "ab12" / "DONE.json"
