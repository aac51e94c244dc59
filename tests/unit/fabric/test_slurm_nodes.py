from fabric_samples import NODES, NODES_JSON, SINFO, SLURM_CONF
from windtunnel.fabric.facts import collect_facts
from windtunnel.fabric.sinfo import parse_sinfo
from windtunnel.fabric.slurm_config import parse_slurm_config
from windtunnel.fabric.slurm_nodes import parse_nodes_json, parse_nodes_text


def test_facts_of_unlike_nodes_are_by_node():
    facts = collect_facts(parse_nodes_text(NODES))
    assert (facts["nodes"], facts["gpus"], facts["gpu_type"], facts["sockets"]) == (2, 4, "h100", 2)
    assert facts["cpus"] == {"c1": 64, "c2": 16}
    assert facts["cfgtres_gpu"] == {"c1": 4, "c2": None}
    assert facts["state"] == {"c1": "IDLE+DRAIN", "c2": "ALLOCATED"}


def test_one_line_a_node_is_read_alike():
    one_line = "".join(f"{' '.join(record.split())}\n" for record in NODES.split("\n\n"))
    assert parse_nodes_text(one_line).hosts == parse_nodes_text(NODES).hosts


def test_json_says_the_same():
    hosts = parse_nodes_json(NODES_JSON).hosts
    assert [(h.name, h.cpus, h.weight, h.state) for h in hosts] == [
        ("c1", 64, 10, "IDLE+DRAIN"),
        ("c2", 16, 1, "ALLOCATED"),
    ]
    assert hosts[0].gres.gpus == 4
    assert hosts[1].sockets is None


def test_a_record_cut_short_has_unknown_fields():
    topology = parse_nodes_text("NodeName=c1 Arch=x86_64 CoresPerSocket=16\n   CPUTot=64 Gres=gpu:h1")
    assert (topology.hosts[0].cpus, topology.hosts[0].gres, topology.hosts[0].state) == (64, None, None)
    assert topology.find("cut-record")
    assert collect_facts(topology)["gpus"] is None


def test_json_cut_short_is_an_error_with_its_place():
    error = parse_nodes_json('{"nodes": [\n {"name": ').errors[0]
    assert (error.code, error.line) == ("json", 2)


def test_sinfo_with_a_header_is_read_by_title_and_each_node_once():
    facts = collect_facts(parse_sinfo(SINFO))
    assert (facts["nodes"], facts["rows"], facts["dup"]) == (2, 3, "n2")
    assert (facts["gpus"], facts["used"]) == (8, [0, 3])
    host = parse_sinfo(SINFO).hosts[0]
    assert (host.sockets, host.cores_per_socket, host.threads_per_core, host.weight) == (2, 8, 2, 1)


def test_sinfos_cells_that_fill_their_width_are_told_by_the_titles_place():
    text = "HOSTNAMES GRES      STATE\nn1        gpu:a100:4idle\nn2        (null)    mix\n"
    hosts = parse_sinfo(text).hosts
    assert [(h.name, h.gres_text, h.state) for h in hosts] == [("n1", "gpu:a100:4", "idle"), ("n2", "(null)", "mix")]


def test_sinfo_with_bars_may_have_empty_cells():
    hosts = parse_sinfo("HOSTNAMES|GRES|STATE\nn1||idle\nn2|gpu:2|mix\n").hosts
    assert [(host.name, host.gres_text, host.state) for host in hosts] == [("n1", "", "idle"), ("n2", "gpu:2", "mix")]


def test_sinfo_by_partition_expands_node_lists():
    facts = collect_facts(
        parse_sinfo("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\np* up infinite 3 idle n[1-3]\n")
    )
    assert (facts["nodes"], facts["gpus"]) == (3, None)


def test_a_row_that_lacks_a_cell_leaves_it_unknown():
    topology = parse_sinfo("n1 mix* gpu:a100:4\n")
    assert (topology.hosts[0].gres.gpus, topology.hosts[0].gres_used, topology.hosts[0].state) == (4, None, "mix*")
    assert topology.find("missing-cell")


def test_slurm_conf_gives_the_clusters_nodes_with_defaults_and_weights():
    hosts = {host.name: host for host in parse_slurm_config(SLURM_CONF).hosts}
    assert len(hosts) == 8
    assert (hosts["n1"].weight, hosts["n5"].weight, hosts["n5"].sockets) == (5, 1, 2)
    assert hosts["n1"].gres.gpus == 8
