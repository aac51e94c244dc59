import json
from itertools import count

import pytest
from benchmarks.harness import (
    Part,
    PartResult,
    Row,
    add_up,
    choose_parts,
    describe_load,
    hash_measured,
    make_share_row,
    run_benchmark,
    run_paired,
)

from windtunnel.errors import SettingsError


def make_part(runs, figures=("speedup",), measures=("units.py",)):
    def run(quick):
        runs.append(quick)
        return PartResult({"speedup": 2.0 + len(runs)}, {"speedup": 5}, (Row("ours", 1.0, 0.9, 1.1, "s", 5),))

    return Part("ring", figures, measures, run)


def test_sides_run_in_turn_and_the_first_round_is_discarded():
    order, clock = [], count(1)

    def side(name):
        def run():
            order.append(name)
            return float(next(clock))

        return run

    paired = run_paired({"a": side("a"), "b": side("b")}, rounds=2)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert paired.seconds == {"a": (4.0, 5.0), "b": (3.0, 6.0)}


def test_a_ratio_is_the_median_of_the_rounds():
    values = iter([10, 5, 4, 8, 9, 3])  # (10, 5), (8, 4) run backwards, (9, 3)
    side = lambda: float(next(values))  # noqa: E731
    ratio = run_paired({"a": side, "b": side}, rounds=3, discard=0).ratio("a", "b")
    assert (ratio.median, ratio.count) == (2.0, 3)
    assert ratio.low <= 2.0 <= ratio.high


def test_a_part_with_a_result_is_not_run_again(tmp_path, capsys):
    runs = []
    first = run_benchmark("placement", [make_part(runs)], quick=False, results=tmp_path)
    second = run_benchmark("placement", [make_part(runs)], quick=False, results=tmp_path)
    assert runs == [False]
    assert first == second == {"benchmark": "placement", "figures": {"speedup": 3.0}, "cases": {"speedup": 5}}
    assert "was measured on" in capsys.readouterr().out


def test_a_part_is_run_again_when_what_it_measures_changed(tmp_path):
    runs = []
    run_benchmark("placement", [make_part(runs)], quick=False, results=tmp_path)
    run_benchmark("placement", [make_part(runs, measures=("errors.py",))], quick=False, results=tmp_path)
    assert len(runs) == 2


def test_a_kept_result_names_its_machine_and_moment(tmp_path):
    run_benchmark("placement", [make_part([])], quick=False, results=tmp_path)
    (path,) = tmp_path.glob("placement-ring-*.json")
    document = json.loads(path.read_text())
    assert document["provenance"].keys() >= {"machine", "cpu", "cpus", "created", "load_before"}
    assert document["result"]["figures"] == {"speedup": 3.0}


def test_a_busy_machine_is_told_of():
    assert describe_load(0.4, 2) == ""
    assert "load 3.0 on 2 CPUs" in describe_load(3.0, 2)


def test_a_quick_run_keeps_nothing(tmp_path):
    runs = []
    run_benchmark("placement", [make_part(runs)], quick=True, results=tmp_path)
    assert runs == [True]
    assert not list(tmp_path.iterdir())


def test_a_part_that_gives_other_figures_than_it_declares_fails(tmp_path):
    with pytest.raises(AssertionError, match="speedup"):
        run_benchmark("placement", [make_part([], figures=("other",))], quick=True, results=tmp_path)


def test_the_hash_follows_sources_alone(tmp_path):
    package = tmp_path / "src" / "windtunnel" / "fabric"
    package.mkdir(parents=True)
    (package / "graph.py").write_text("a = 1\n")
    before = hash_measured(["fabric"], root=tmp_path)
    (package / "graph.pyc").write_text("compiled")
    assert hash_measured(["fabric"], root=tmp_path) == before
    (package / "graph.py").write_text("a = 2\n")
    assert hash_measured(["fabric"], root=tmp_path) != before


def test_what_is_measured_must_exist():
    with pytest.raises(AssertionError, match="no_such_package"):
        hash_measured(["no_such_package"])


def make_adding_part(runs, wanted):
    def run(quick):
        runs.append(quick)
        good = [len(runs) > 1] * 10
        return PartResult({"kept": sum(good) / 10}, {"kept": 10}, (make_share_row("kept", good),))

    return Part("kills", ("kept",), ("units.py",), run, wanted_cases=wanted)


def test_a_part_that_adds_up_is_run_until_it_has_its_cases(tmp_path):
    runs = []
    for _ in range(4):
        said = run_benchmark("faults", [make_adding_part(runs, 30)], quick=False, results=tmp_path)
    assert len(runs) == len(list(tmp_path.iterdir())) == 3
    assert said == {"benchmark": "faults", "figures": {"kept": 20 / 30}, "cases": {"kept": 30}}


def test_more_runs_of_a_part_that_adds_up_may_be_asked_for_at_once(tmp_path, monkeypatch, capsys):
    runs = []
    monkeypatch.setenv("MORE", "2")
    run_benchmark("faults", [make_adding_part(runs, 30)], quick=False, results=tmp_path)
    assert len(runs) == 2
    assert "kills has 20 of 30 cases" in capsys.readouterr().out


def test_results_add_up_as_means_over_cases():
    one = PartResult({"kept": 1.0}, {"kept": 1}, (make_share_row("a", [True]),))
    other = PartResult({"kept": 0.0}, {"kept": 3}, (make_share_row("a", [False] * 3), make_share_row("b", [True])))
    both = add_up([one, other])
    assert (both.figures, both.cases) == ({"kept": 0.25}, {"kept": 4})
    assert both.rows == (Row("a", 0.25, 0.0, 1.0, "", 4), Row("b", 1.0, 1.0, 1.0, "", 1))


def test_a_table_of_words_is_kept_and_printed_again(tmp_path, capsys):
    words = (("case", "ours"), ("a bit flips", "found"))
    part = Part("matrix", (), ("units.py",), lambda quick: PartResult({}, {}, (), words))
    for _ in range(2):
        said = run_benchmark("faults", [part], quick=False, results=tmp_path)
        assert capsys.readouterr().out.endswith("\ncase         ours\na bit flips  found\n")
    assert said == {"benchmark": "faults", "figures": {}, "cases": {}}
    assert len(list(tmp_path.iterdir())) == 1


def test_parts_are_chosen_by_name_and_an_unknown_one_gives_the_names():
    part = make_part([])
    assert choose_parts([part], []) == choose_parts([part], ["ring"]) == (part,)
    with pytest.raises(SettingsError, match="there is no part 'rung': ring"):
        choose_parts([part], ["rung"])
