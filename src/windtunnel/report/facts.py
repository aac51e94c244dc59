"""The page's tables about everything but trials: cluster, device, models, data, stages, provenance. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from windtunnel.fabric.outline import outline_paths
from windtunnel.fabric.svg import render_outline_svg
from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.cluster import Collectives, DeviceFacts, Models, Node, Topology
from windtunnel.records.data import ShardManifest
from windtunnel.records.plan import Plan
from windtunnel.report.benchmarks import StageTime
from windtunnel.report.collect import Stamp
from windtunnel.report.markup import Cell, Column, Html, render_table, tag
from windtunnel.report.wording import NONE, format_number
from windtunnel.units import MIB, format_bytes, format_count, format_seconds, format_time_slurm


def render_nodes(topology: Topology) -> Html:
    """Nodes alike in everything, in one row."""
    alike: defaultdict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in topology.nodes:
        alike[(node.cpus, node.mem_mib, node.gpus, node.state, node.switches)].append(node)
    cells = [
        [
            Cell(collapse_hostlist(node.name for node in nodes)),
            Cell(str(len(nodes)), len(nodes)),
            Cell(str(first.cpus), first.cpus),
            Cell(str(first.gpus), first.gpus),
            Cell(format_bytes(first.mem_mib * MIB), first.mem_mib),
            Cell(" > ".join(first.switches) or "unknown"),
            Cell(first.state),
        ]
        for nodes in alike.values()
        for first in nodes[:1]
    ]
    columns = [
        Column("Nodes"),
        Column("Count", True),
        Column("CPUs", True),
        Column("GPUs", True),
        Column("Memory", True),
        Column("Switches, top to leaf"),
        Column("State"),
    ]
    return render_table(columns, cells, caption=describe_partition(topology))


def render_switches(topology: Topology) -> Html:
    """The partition's tree of switches as a drawing; nothing where no node tells its switches."""
    if not any(node.switches for node in topology.nodes):
        return Html("")
    branches = outline_paths({node.name: node.switches or None for node in topology.nodes})
    title = f"Switches of partition {topology.partition}"
    drawing = Html(render_outline_svg(branches, title))
    return tag("figure", tag("figcaption", title), tag("div", drawing, class_="frame"))


def describe_partition(topology: Topology) -> str:
    """The partition in a line, with what its facts hang on."""
    limit = "no time limit" if topology.max_time_min is None else f"limit {format_time_slurm(topology.max_time_min)}"
    source = "read from Slurm" if topology.source == "slurm" else "read from this machine"
    return f"Partition {topology.partition}, {limit}, {source}, fingerprint {topology.fingerprint[:12]}"


def render_collectives(collectives: Collectives) -> Html:
    """One row per collective and size, with the median and spread over repeats."""
    cells = [
        [
            Cell(timing.operation),
            Cell(timing.backend),
            Cell(str(timing.ranks), timing.ranks),
            Cell(str(timing.nodes), timing.nodes),
            Cell(format_bytes(timing.bytes), timing.bytes),
            Cell(format_seconds(timing.median_s), timing.median_s),
            Cell(format_seconds(timing.spread_s), timing.spread_s),
            Cell(str(timing.repeats), timing.repeats),
            Cell(f"{timing.busbw_gbps:.3g}", timing.busbw_gbps),
        ]
        for timing in collectives.timings
    ]
    columns = [
        Column("Operation"),
        Column("Backend"),
        Column("Ranks", True),
        Column("Nodes", True),
        Column("Size", True),
        Column("Median", True),
        Column("Spread", True),
        Column("Repeats", True),
        Column("busbw, GB/s", True, "As nccl-tests defines it: for an all-reduce, bytes x 2 (n - 1) / n / seconds"),
    ]
    return render_table(columns, cells, caption=f"Collectives, measured on {collapse_hostlist(collectives.hosts)}")


def render_device(device: DeviceFacts) -> Html:
    """Attainable rates, all measured."""
    cells = [
        [
            Cell(rate.name),
            Cell(format_number(rate.value), rate.value),
            Cell(format_number(rate.spread), rate.spread),
            Cell(rate.unit),
            Cell(str(rate.repeats), rate.repeats),
        ]
        for rate in device.rates
    ]
    columns = [
        Column("Rate"),
        Column("Median", True),
        Column("Spread", True),
        Column("Unit"),
        Column("Repeats", True),
    ]
    caption = f"{device.device} on {device.host} ({device.cpus} CPUs, {format_bytes(device.mem_mib * MIB)}), measured"
    return render_table(columns, cells, caption=caption)


def render_models(models: Models) -> Html:
    """What a model is: counted from its operations, not measured."""
    cells = [
        [
            Cell(model.name),
            Cell(format_count(model.params), model.params),
            Cell(str(model.batch_size), model.batch_size),
            Cell(format_count(model.forward_flops), model.forward_flops),
            Cell(f"{len(model.operations):,}", len(model.operations)),
            Cell(model.target),
        ]
        for model in models.models
    ]
    columns = [
        Column("Model"),
        Column("Parameters", True),
        Column("Batch", True),
        Column("Forward FLOP", True, "Counted from shapes at this batch size, not measured"),
        Column("Operations", True),
        Column("Class"),
    ]
    return render_table(columns, cells, caption="Models, counted from their operations (not measured)")


def render_data(data: ShardManifest) -> Html:
    """Rows in, kept and quarantined of each raw file, and in total."""
    cells = [
        [
            Cell(item.path),
            *[Cell(f"{n:,}", n) for n in (item.rows_in, item.rows_kept, item.rows_quarantined)],
            Cell(format_bytes(item.bytes), item.bytes),
            Cell(", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in item.flagged.items()) or NONE),
        ]
        for item in data.inputs
    ]
    totals = [
        sum(getattr(item, name) for item in data.inputs) for name in ("rows_in", "rows_kept", "rows_quarantined")
    ]
    size = sum(item.bytes for item in data.inputs)
    total = [Cell(f"{n:,}", n) for n in totals]
    cells.append([Cell("Total", tone="total"), *total, Cell(format_bytes(size), size), Cell("")])
    columns = [
        Column("Raw file"),
        Column("Rows in", True),
        Column("Kept", True),
        Column("Quarantined", True),
        Column("Size", True),
        Column("Odd rows among the kept"),
    ]
    return render_table(columns, cells, caption=f"Dataset {data.dataset}: rows in = rows kept + rows quarantined")


def render_stages(stages: Sequence[StageTime]) -> Html:
    """What each stage of the workflow took, by Snakemake's own measurement."""
    cells = [
        [
            Cell(stage.stage),
            Cell(format_seconds(stage.wall_s), stage.wall_s),
            Cell(NONE if stage.cpu_s is None else format_seconds(stage.cpu_s), stage.cpu_s),
            Cell(NONE if stage.max_rss_mib is None else format_bytes(stage.max_rss_mib * MIB), stage.max_rss_mib),
            Cell(NONE if stage.mean_load_percent is None else f"{stage.mean_load_percent:.0f} %"),
        ]
        for stage in sorted(stages, key=lambda stage: -stage.wall_s)
    ]
    columns = [
        Column("Stage"),
        Column("Wall time", True),
        Column("CPU time", True),
        Column("Peak memory", True),
        Column("Mean load", True),
    ]
    return render_table(columns, cells, caption="Stages of the workflow, by Snakemake's benchmark tables")


def render_identity(plan: Plan) -> Html:
    """What every trial's identity is made of besides its settings."""
    identity = plan.identity
    pairs = [
        ("Data (SHA-256 of the feature manifest)", identity.data_sha256),
        ("Source (SHA-256 of the packages that can change a result)", identity.source_sha256),
        ("torch", identity.torch_version),
    ]
    cells = [[Cell(name), Cell(value, tone="code")] for name, value in pairs]
    return render_table([Column("Part"), Column("Value")], cells, caption="Identity of the plan")


def render_stamps(stamps: Sequence[Stamp]) -> Html:
    """Where each artifact came from."""
    cells = [
        [
            Cell(stamp.artifact),
            Cell(stamp.schema, tone="code"),
            Cell(stamp.settings_hash[:12] or NONE, tone="code"),
            *[
                Cell(stamp.provenance.get(key, NONE))
                for key in ("windtunnel", "python", "host", "machine", "created")
            ],
        ]
        for stamp in stamps
    ]
    titles = ("Artifact", "Schema", "Settings hash", "Windtunnel", "Python", "Host", "Machine", "Made, UTC")
    return render_table([Column(title) for title in titles], cells, caption="Artifacts that this page was made from")


def find_old(stamps: Sequence[Stamp], *, max_age_days: float, now: datetime) -> list[str]:
    """A warning for each fact about the cluster that is past its age."""
    warnings = []
    for stamp in stamps:
        if stamp.artifact not in ("topology.json", "collectives.json", "device.json"):
            continue
        try:
            age_days = (now - datetime.fromisoformat(stamp.provenance["created"])).total_seconds() / 86400
        except (KeyError, ValueError, TypeError):
            continue  # a stamp without a moment has no age
        if age_days > max_age_days:
            warnings.append(
                f"{stamp.artifact} is {age_days:.0f} days old, past cluster.max_age_days={max_age_days:g}: "
                "remove it and run the same command to measure again"
            )
    return warnings
