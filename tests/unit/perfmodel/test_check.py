import csv
import math
import random
from dataclasses import replace

import pytest

from windtunnel.cli.main import main
from windtunnel.errors import InputFileError
from windtunnel.perfmodel.check import MOST_FITTED, check_runs, choose_fitted, find_half, fit_source
from windtunnel.perfmodel.constants import Constants
from windtunnel.perfmodel.estimate import estimate_step
from windtunnel.perfmodel.layout import Recompute
from windtunnel.perfmodel.tables import read_runs

COLUMNS = [
    "source",
    "url_or_repo_path",
    "model",
    "n_params",
    "n_layers",
    "d_model",
    "n_heads",
    "n_kv_heads",
    "d_ff",
    "vocab",
    "seq_len",
    "hardware",
    "n_gpus",
    "gpus_per_node",
    "interconnect",
    "dp",
    "fsdp",
    "zero_stage",
    "tp",
    "sp",
    "pp",
    "vpp",
    "cp",
    "micro_batch",
    "global_batch",
    "precision",
    "activation_ckpt",
    "attention_impl",
    "tokens_per_s_per_gpu",
    "step_time_s",
    "memory_gib",
    "memory_kind",
    "notes",
]
PLANTED = Constants(efficiency=0.7, inside_bytes_per_s=1e11, score_passes=5.0, launch_s=5e-4, logits_passes=15.0)


def write_table(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def make_row(**more):
    fixed = {
        "source": "ours",
        "model": "GPT",
        "n_layers": "24",
        "d_model": "2048",
        "n_heads": "16",
        "seq_len": "1024",
    }
    layout = {"n_gpus": "8", "gpus_per_node": "8", "tp": "2", "pp": "1", "dp": "4", "micro_batch": "4"}
    device = {"hardware": "A100-SXM-80GB", "precision": "fp16", "activation_ckpt": "full", "global_batch": "64"}
    return {**fixed, **layout, **device, **more}


def make_rows(count=60):
    """Measured to the percent on a stack with planted constants, each family in several layouts."""
    chance, rows = random.Random(1), []
    for _ in range(count):
        tensor, width = chance.choice((1, 2, 4, 8)), chance.choice((1024, 2048, 4096))
        layers, micro = chance.choice((12, 24, 36)), chance.choice((1, 2, 4, 8))
        size = {"d_model": str(width), "n_layers": str(layers), "n_heads": str(width // 64)}
        rows.append(make_row(tp=str(tensor), dp=str(8 // tensor), micro_batch=str(micro), **size))
    return rows


@pytest.fixture
def table(tmp_path):
    rows = make_rows()
    runs = read_runs(write_table(tmp_path / "bare.csv", [{**row, "step_time_s": "1"} for row in rows]))
    chance = random.Random(2)
    times = [estimate_step(run.job, PLANTED).total_s * chance.gauss(1.0, 0.01) for run in runs]
    return write_table(
        tmp_path / "runs.csv", [{**row, "step_time_s": str(time)} for row, time in zip(rows, times, strict=True)]
    )


def test_planted_constants_are_found_again(table):
    fit = fit_source(read_runs(table))
    assert len(fit.fitted) <= MOST_FITTED
    for name in ("efficiency", "inside_bytes_per_s", "score_passes", "launch_s"):
        assert getattr(fit.constants, name) == pytest.approx(getattr(PLANTED, name), rel=0.1), name


def test_unseen_families_are_predicted_and_the_fastest_layouts_kept(table):
    (check,) = check_runs(read_runs(table))
    assert check.mape < 3
    assert check.baseline_mape > 3 * check.mape
    assert check.kendall > 0.8
    assert check.kept_best(0.5) == 1.0


def test_no_job_is_in_both_halves(table):
    runs = read_runs(table)
    halves = [{run.family for run in runs if find_half(run.family) == half} for half in (0, 1)]
    assert halves[0]
    assert halves[1]
    assert not halves[0] & halves[1]


def test_constants_of_which_runs_tell_nothing_stay_at_their_priors(table):
    alone = [run for run in read_runs(table) if run.job.layout.tensor == 1]
    fit = fit_source(alone)
    assert "inside_bytes_per_s" not in fit.fitted
    assert "node_bytes_per_s" not in choose_fitted(alone)
    assert fit.constants.misaligned == Constants().misaligned


def test_a_row_is_read_as_it_is_meant(tmp_path):
    row = make_row(
        model="LLAMA3_8B",
        n_kv_heads="2",
        vocab="1000",
        sp="1",
        interconnect="NVLink3 + 4x Omni-Path 100Gb/s per node",
        activation_ckpt="selective:core_attn",
        attention_impl="flash",
        zero_stage="1",
        tokens_per_s_per_gpu="2048",
    )
    (run,) = read_runs(write_table(tmp_path / "t.csv", [row]))
    model, layout = run.job.model, run.job.layout
    assert (model.gated, model.tied, model.kv_heads, model.ffn_width) == (True, False, 2, 8192)
    assert (layout.micro_batches, layout.recompute, layout.zero) == (4, Recompute.SELECTIVE, 1)
    assert layout.fused_attention
    assert layout.sequence_parallel
    assert run.step_s == pytest.approx(64 * 1024 / (2048 * 8))
    assert run.node_bytes_per_s == 50e9


def test_a_row_without_a_shape_or_of_an_unknown_device_is_passed_over(tmp_path):
    rows = [make_row(d_model=""), make_row(hardware="TPU v4"), make_row(step_time_s="1.5")]
    (run,) = read_runs(write_table(tmp_path / "t.csv", rows))
    assert run.step_s == 1.5


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "\x00\xff"], ids=["empty", "other columns", "no text"])
def test_another_kind_of_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputFileError, match=r"t\.csv"):
        read_runs(path)


def test_a_source_with_one_family_cannot_be_judged(tmp_path):
    rows = [make_row(step_time_s="1.5"), make_row(tp="4", dp="2", step_time_s="2")]
    assert check_runs(read_runs(write_table(tmp_path / "t.csv", rows))) == ()


def test_the_command_prints_a_line_a_source_and_the_constants_as_json(table, capsys):
    assert main(["perfmodel", "check", str(table)]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["source", "runs", "error", "baseline"]
    assert line.split()[:2] == ["ours", "60"]
    assert main(["perfmodel", "check", str(table), "--json"]) == 0
    assert '"efficiency"' in capsys.readouterr().out


def test_slower_steps_are_fitted_as_a_slower_stack(table):
    runs = read_runs(table)
    slower = [replace(run, step_s=2 * run.step_s) for run in runs]
    ratio = fit_source(slower).constants.efficiency / fit_source(runs).constants.efficiency
    assert math.isclose(ratio, 0.5, rel_tol=0.2)
