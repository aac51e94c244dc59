from pathlib import Path

import pytest

from windtunnel.errors import InputFileError
from windtunnel.report.benchmarks import name_stage, parse_stage_times, read_stage_times

# As Snakemake 9.27.1 wrote them: a rule long enough to be sampled, and one that was too short.
SAMPLED = (
    "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
    "3.92\t0:00:03\t16.33\t20.43\t6.98\t7.75\t0.06\t0.00\t52.64\t2.25\n"
)
TOO_SHORT = (
    "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"
    "0.02\t0:00:00\t0\t0\t0\t0\t0.00\t0.00\t0.00\t0.00\n"
)


def test_a_sampled_rule_has_all_its_numbers():
    (stage,) = parse_stage_times(SAMPLED, stage="a")
    assert (stage.wall_s, stage.cpu_s, stage.max_rss_mib, stage.mean_load_percent) == (3.92, 2.25, 16.33, 52.64)


def test_what_snakemake_could_not_measure_is_none():
    for text in (TOO_SHORT, TOO_SHORT.replace("\t0\t", "\tNA\t")):
        (stage,) = parse_stage_times(text, stage="a")
        assert (stage.wall_s, stage.cpu_s, stage.max_rss_mib, stage.written_mib) == (0.02, None, None, None)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("benchmarks/quickstart/sweep.tsv", "quickstart/sweep"),
        ("/a/benchmarks/features/daily-1a2b.tsv", "features/daily-1a2b"),
        ("elsewhere/plan.tsv", "elsewhere/plan"),
        ("plan.tsv", "plan"),
    ],
)
def test_a_stage_is_named_by_its_tables_path(path, name):
    assert name_stage(Path(path)) == name


@pytest.mark.parametrize("text", [None, "", "a\tb\n1\t2\n"])
def test_a_table_without_times_is_refused_by_name(tmp_path, text):
    path = tmp_path / "plan.tsv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputFileError, match=r"plan\.tsv"):
        read_stage_times(path)
