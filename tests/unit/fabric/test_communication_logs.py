import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric_samples import NCCL_LOG, OSU
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.nccl_json import parse_nccl_json
from windtunnel.fabric.nccl_tests import parse_nccl_tests
from windtunnel.fabric.osu import find_program, parse_osu

TAIL = "time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
BOTH = f"#  size  count  type  redop  root  {TAIL}\n"
END = "# Avg bus bandwidth    : 1.5\n"


def log(rows, header=BOTH):
    return header + "".join(f"{row}\n" for row in rows) + END


def operation_and_ranks(text):
    facts = collect_facts(parse_nccl_tests(text))
    return facts["op"], facts["n_ranks"]


def test_a_whole_log_is_read():
    facts = collect_facts(parse_nccl_tests(NCCL_LOG))
    assert (facts["op"], facts["n_ranks"], facts["rows"], facts["avg_busbw"]) == ("all_reduce", 2, 2, 0.00125)
    assert (facts["truncated"], facts["elided"], facts["out_of_place_wrong"]) == (False, False, "0")
    assert facts["n_nodes"] == 1
    assert (facts["in_place_wrong"], facts["program_version"]) == (["0", "N/A"], "2.17.2")


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>: ", "[prterun-h-7@1,12]<stdout>:", "0: ", " 3: ", "node-01: "])
def test_what_mpirun_or_srun_put_before_lines_is_left_out(prefix):
    text = "".join(f"{prefix}{line}\n" for line in NCCL_LOG.splitlines())
    assert collect_facts(parse_nccl_tests(text)) == collect_facts(parse_nccl_tests(NCCL_LOG))


def test_timestamps_behind_rows_are_no_cells():
    stamped = NCCL_LOG.replace("0.00       0\n", "0.00       0  2025-06-01 12:00:00\n")
    assert collect_facts(parse_nccl_tests(stamped))["rows"] == 2


ROW8 = "1048576 262144 float {redop} 100.0 10.49 18.35 0 100.0 10.49 18.35 0"


@pytest.mark.parametrize(
    ("rows", "header", "wanted"),
    [
        ([ROW8.format(redop="sum -1")], BOTH, ("all_reduce", 8)),
        (["1048576 32768 float none -1 100.0 10.49 9.18 0 100.0 10.49 9.18 0"], BOTH, (None, 8)),
        (
            ["1048576 32768 float 100.0 10.49 9.18 0 100.0 10.49 9.18 0"],
            f"# size count type {TAIL}\n",
            ("all_gather", 8),
        ),
        (
            ["1048576 32768 float 100.0 10.49 9.18 0 100 10.49 9.18 0"],
            f"# size count type redop {TAIL}\n",
            ("alltoall", 8),
        ),
        (["1048576 32768 float sum -1 100.0 10.49 9.18 0 100.0 10.49 9.18 0"], BOTH, ("reduce_scatter", 8)),
        (["1048576 262144 float sum 0 100.0 10.49 10.49 0 100.0 10.49 10.49 0"], BOTH, ("reduce", None)),
        (["1048576 262144 float none 0 100.0 10.49 10.49 0 100.0 10.49 10.49 0"], BOTH, ("broadcast", None)),
        (["1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0"], BOTH, (None, None)),
        ([], BOTH, (None, None)),
    ],
)
def test_operation_and_ranks_are_said_only_where_nothing_else_fits(rows, header, wanted):
    assert operation_and_ranks(log(rows, header)) == wanted


def test_a_program_named_anywhere_settles_the_operation():
    text = "$ mpirun ./build/sendrecv_perf -b 8\n" + log(["8 2 float sum -1 1.0 0.1 0.1 0 1.0 0.1 0.1 0"])
    assert operation_and_ranks(text)[0] == "sendrecv"


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(st.integers(3, 64), st.floats(50, 400))
def test_ranks_found_from_rounded_bandwidths_are_right_or_unknown(ranks, algbw):
    busbw = algbw * 2 * (ranks - 1) / ranks
    row = f"1048576 262144 float sum -1 9.9 {algbw:.2f} {busbw:.2f} 0 9.9 {algbw:.2f} {busbw:.2f} 0"
    assert operation_and_ranks(log([row])) in (("all_reduce", ranks), ("all_reduce", None))


def test_a_row_cut_short_is_a_finding_and_no_row():
    topology = parse_nccl_tests(BOTH + "8 2 float sum -1 1.0 0.1 0.1 0 1.0\n")
    assert (topology.timings.rows, topology.timings.truncated) == ((), True)
    assert topology.find("cut-row")[0].line == 2


def test_dots_instead_of_rows_are_said():
    assert collect_facts(parse_nccl_tests(BOTH + "   ...\n" + END))["elided"]


def test_a_cut_list_of_ranks_is_not_counted():
    text = NCCL_LOG.replace("#  Rank  1 Group  0 Pid   1002 on", "#  Rank  1 Group  0 Pid   1002 on n...\n# x")
    assert collect_facts(parse_nccl_tests(text))["n_ranks"] is None


def test_iterations_beside_samples_are_no_other_samples():
    spread = "i_min i_max i_p99 i_cv%"
    header = f"# size count type redop root time algbw busbw #wrong {spread} time algbw busbw #wrong {spread}\n"
    topology = parse_nccl_tests(header + "8 2 float sum -1 1.0 0.1 0.2 0 1 2 3 4 5.0 0.3 0.4 0 1 2 3 4\n" + END)
    assert topology.timings.rows[0].in_place.time_us == 5


def test_the_json_report_says_the_same():
    sample = {"time": 12.3, "alg_bw": 1.0, "bus_bw": 1.5, "nwrong": None}
    row = {
        "size": 8,
        "count": 2,
        "type": "float",
        "redop": "sum",
        "root": "    -1",
        "out_of_place": sample,
        "in_place": sample,
    }
    report = {"args": ["./all_reduce_perf"], "config": {"devices": [{}, {}]}, "results": [row]}
    report["average_bus_bandwidth"] = {"bandwidth": 1.5}
    facts = collect_facts(parse_nccl_json(json.dumps(report)))
    assert (facts["op"], facts["n_ranks"], facts["rows"], facts["avg_busbw"]) == ("all_reduce", 2, 1, 1.5)
    assert facts["in_place_wrong"] == "N/A"


def test_an_osu_log_is_read_by_its_columns():
    topology = parse_osu(OSU)
    facts = collect_facts(topology)
    assert (facts["benchmark"], facts["program_version"], facts["rows"]) == ("osu_allreduce", "7.4", 3)
    assert (facts["alpha_us"], facts["max_bytes"]) == (3.51, 1048576)
    assert dict(topology.timings.rows[2].values)["Iterations"] == 100


def test_a_latency_that_no_small_size_shows_is_unknown():
    text = "# OSU MPI Latency Test v5.3.2\n# Size          Latency (us)\n65536   15.03\n"
    assert collect_facts(parse_osu(text))["alpha_us"] is None
    text = "# OSU MPI Bandwidth Test v5.3.2\n# Size      Bandwidth (MB/s)\n1   2.03\n"
    assert collect_facts(parse_osu(text))["alpha_us"] is None


@pytest.mark.parametrize(
    ("title", "program"),
    [
        ("MPI Latency Test", "osu_latency"),
        ("MPI-CUDA Bandwidth Test", "osu_bw"),
        ("MPI Bi-Directional Bandwidth Test", "osu_bibw"),
        ("MPI Multi Latency Test", "osu_multi_lat"),
        ("MPI Multiple Bandwidth / Message Rate Test", "osu_mbw_mr"),
        ("MPI All-to-All Personalized Exchange Latency Test", "osu_alltoall"),
        ("MPI Broadcast Latency Test", "osu_bcast"),
        ("MPI Allgatherv Latency Test", "osu_allgatherv"),
        ("MPI Reduce_scatter Latency Test", "osu_reduce_scatter"),
        ("MPI Non-blocking Allreduce Latency Test", "osu_allreduce"),
        ("MPI_Put Latency Test", "osu_put_latency"),
        ("MPI_Get_accumulate latency Test", "osu_get_acc_latency"),
        ("MPI Telepathy Test", None),
    ],
)
def test_the_program_follows_from_the_title(title, program):
    assert find_program(title) == program
