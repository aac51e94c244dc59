"""What monitoring reads."""

import json

from windtunnel.attempt.exporters import Exporter, Labels, mapped_gpus, render_metrics

LABELS = Labels('a"b', 2, "12_3")


def test_a_record_becomes_gauges_with_escaped_labels():
    text = render_metrics(LABELS, {"step": 40, "loss": 0.5, "samples_per_s": None, "other": 1})
    assert text == (
        "# HELP windtunnel_step Optimizer steps done.\n"
        "# TYPE windtunnel_step gauge\n"
        'windtunnel_step{trial="a\\"b",attempt="2",job="12_3"} 40\n'
        "# HELP windtunnel_loss Training loss since the line before.\n"
        "# TYPE windtunnel_loss gauge\n"
        'windtunnel_loss{trial="a\\"b",attempt="2",job="12_3"} 0.5\n'
    )


def test_the_file_is_there_while_the_attempt_runs_and_is_not_written_at_each_look(tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(json.dumps({"step": 1}) + "\n")
    exporter = Exporter(tmp_path, Labels("aa", 1, ""), metrics)
    exporter.look()
    (path,) = tmp_path.glob("*.prom")
    path.unlink()
    exporter.look()
    assert not path.exists()
    path.write_text("")
    exporter.close()
    assert not path.exists()


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    exporter = Exporter(tmp_path / "file", LABELS, tmp_path / "none")
    exporter.look()
    exporter.close()


def test_the_nodes_gpus_are_the_jobs_for_as_long_as_it_runs(tmp_path):
    with mapped_gpus(tmp_path, "12", {"SLURM_JOB_GPUS": "0,3"}):
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "12\n", "3": "12\n"}
    assert list(tmp_path.iterdir()) == []
    with mapped_gpus(tmp_path, "", {"SLURM_JOB_GPUS": "0"}):
        assert list(tmp_path.iterdir()) == []
