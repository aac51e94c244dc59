"""The page's tables of what was measured of each trial: speed, latency, and scores on unseen data. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from windtunnel.hostlist import collapse_hostlist
from windtunnel.records.goodput import Bucket, Goodput
from windtunnel.records.meter import StepPhase, sum_error
from windtunnel.report.markup import Cell, Column, Html, render_table
from windtunnel.report.rows import Row, finite
from windtunnel.report.wording import NONE, format_loss, format_number, format_percent
from windtunnel.units import MIB, format_bytes, format_count, format_seconds

_PHASE_TITLES = {
    StepPhase.DATA_WAIT: "Data wait",
    StepPhase.HOST_TO_DEVICE: "Host to device",
    StepPhase.FORWARD: "Forward",
    StepPhase.BACKWARD: "Backward",
    StepPhase.COMMUNICATION: "Communication, exposed",
    StepPhase.OPTIMIZER: "Optimizer",
    StepPhase.CHECKPOINT: "Checkpoint",
    StepPhase.OTHER: "Other",
}


def render_throughput(rows: Sequence[Row]) -> Html:
    """Step times with their counts, peak memory, and where the time went."""
    columns = [
        Column("Trial"),
        Column("Samples/s", True),
        Column("Step p50, ms", True),
        Column("Step p90, ms", True),
        Column("Steps timed", True),
        Column("Discarded first", True),
        Column("Peak memory of a rank", True),
        Column("Ranks", True),
        Column("Hosts"),
        Column("Device"),
        Column("Time by phase"),
    ]
    cells = [
        [
            Cell(row.label),
            Cell(format_number(found.samples_per_s), found.samples_per_s),
            *[Cell(format_number(value), value) for value in row.step_times_ms],
            Cell(f"{found.steps_timed:,}", found.steps_timed),
            Cell(f"{found.steps_discarded:,}", found.steps_discarded),
            _memory_cell(found.peak_rss_mib),
            Cell(str(len(found.rank_hosts)), len(found.rank_hosts)),
            Cell(collapse_hostlist(found.rank_hosts)),
            Cell(found.device),
            Cell(", ".join(f"{name} {format_seconds(s)}" for name, s in found.phases_s.items())),
        ]
        for row in rows
        if (found := row.outcome)
    ]
    return render_table(columns, cells, caption="Speed of training, measured; warm-up discarded")


def render_utilization(rows: Sequence[Row]) -> Html:
    """Tokens, operations, and shares of the devices' peaks; what is not known says so."""
    found = [(row, row.outcome.work) for row in rows if row.outcome and row.outcome.work]
    if not found:
        return Html("")
    columns = [
        Column("Trial"),
        Column("Tokens/s", True, "Measured: rows of the windows of the global batch, over the median step time"),
        Column("Arithmetic"),
        Column("FLOP a step", True, "Of the model's mathematics, on all ranks together"),
        Column("FLOP count"),
        Column("MFU, measured peak", True, "Against what calibrate measured of this device"),
        Column("MFU, data sheet", True, "Against what the maker gives for this device"),
        Column("HFU, measured peak", True, "With what is computed again, against what calibrate measured"),
        Column("HFU, data sheet", True, "With what is computed again, against what the maker gives"),
    ]
    cells = [
        [
            Cell(row.label),
            Cell(format_number(row.tokens_per_s), row.tokens_per_s),
            Cell(work.dtype),
            Cell("unknown" if work.model_flops is None else format_count(work.model_flops), work.model_flops),
            Cell(work.flop_source),
            *[_known_share_cell(share) for share in astuple(row.utilization)],
        ]
        for row, work in found
    ]
    return render_table(columns, cells, caption="Use of the devices while training; steps measured, FLOP counted")


def render_phases(rows: Sequence[Row]) -> Html:
    """Share of each phase in the training loop's time, a row a rank."""
    found = [
        (row.label, rank, phases)
        for row in rows
        if row.outcome
        for rank, phases in enumerate(row.outcome.rank_phases)
        if phases.wall_s > 0
    ]
    if not found:
        return Html("")
    columns = [
        Column("Trial"),
        Column("Rank", True),
        Column("Time in the loop", True, "By the host's clock, warm-up left out"),
        *[Column(_PHASE_TITLES[phase], True) for phase in StepPhase],
        Column("Sum off by", True, "How far the phases' sum is from the time in the loop"),
    ]
    cells = [
        [
            Cell(label),
            Cell(str(rank), rank),
            Cell(format_seconds(phases.wall_s), phases.wall_s),
            *[_share_cell(phases.seconds.get(phase, 0.0) / phases.wall_s) for phase in StepPhase],
            _share_cell(sum_error(phases)),
        ]
        for label, rank, phases in found
    ]
    return render_table(columns, cells, caption="Phases of training, measured on each rank: share of its time")


def render_memory(rows: Sequence[Row]) -> Html:
    """Memory by kind of the rank that held most, and energy."""
    found = [
        (row.label, max(row.outcome.rank_memory, key=lambda memory: memory.peak_bytes), row.outcome.energy)
        for row in rows
        if row.outcome and row.outcome.rank_memory
    ]
    if not found:
        return Html("")
    columns = [
        Column("Trial"),
        Column("Weights", True, "Parameters and buffers"),
        Column("Gradients", True),
        Column("Optimizer", True),
        Column("Activations", True, "Saved by a forward pass for its backward pass"),
        Column("Peak", True, "Of the accelerator's allocator; on a processor the resident size of the process"),
        Column("Allocated", True, "By the accelerator's allocator, after the last step"),
        Column("Reserved", True, "By the accelerator's allocator, after the last step"),
        Column("Energy, J", True, "Of all its hosts, while it trained"),
        Column("Energy by"),
    ]
    cells = [
        [
            Cell(label),
            *[_bytes_cell(size) for size in astuple(memory)],
            Cell("unknown" if energy is None else format_number(energy.joules), energy.joules if energy else None),
            Cell(energy.source if energy else NONE),
        ]
        for label, memory, energy in found
    ]
    return render_table(columns, cells, caption="Memory of the rank that held most, and energy, measured")


def render_goodputs(goodputs: Mapping[str, Goodput]) -> Html:
    """Wall time of trials by label, and the share of it that each bucket has that any of them has."""
    buckets = [bucket for bucket in Bucket if any(goodput.seconds[bucket] for goodput in goodputs.values())]
    columns = [
        Column("Trial"),
        Column("Wall time", True, "From its first submission to its end, over all attempts"),
        Column("New steps/s", True, "Over the time that they took, however often it was resumed"),
        *[Column(bucket.replace("_", "-").capitalize(), True) for bucket in buckets],
    ]
    cells = [
        [
            Cell(label),
            Cell(format_seconds(goodput.wall_s), goodput.wall_s),
            Cell(format_number(goodput.steps_per_s or None), goodput.steps_per_s or None),
            *[_share_cell(goodput.seconds[bucket] / goodput.wall_s) for bucket in buckets],
        ]
        for label, goodput in goodputs.items()
    ]
    return render_table(columns, cells, caption="Where the time went, measured over all attempts")


def render_evaluations(rows: Sequence[Row]) -> Html:
    """Loss and every metric on the validation and the test range."""
    found = [(row, evaluation) for row in rows if row.outcome for evaluation in row.outcome.evaluations]
    names = list(dict.fromkeys(name for _, evaluation in found for name in evaluation.metrics))
    columns = [
        Column("Trial"),
        Column("Range"),
        Column("Samples", True),
        Column("Loss", True),
        *[Column(name.replace("_", " "), True) for name in names],
    ]
    cells = [
        [
            Cell(row.label),
            Cell(evaluation.split),
            Cell(f"{evaluation.samples:,}", evaluation.samples),
            *[_score_cell(value) for value in (evaluation.loss, *map(evaluation.metrics.get, names))],
        ]
        for row, evaluation in found
    ]
    return render_table(columns, cells, caption="Scores of the final model on ranges that it was not trained on")


def render_latency(rows: Sequence[Row]) -> Html:
    """Single-sample inference, microseconds."""
    columns = [
        Column("Trial"),
        Column("p50, us", True),
        Column("p99, us", True),
        Column("p99.9, us", True),
        Column("Samples", True),
        Column("Discarded first", True),
        Column("Device"),
        Column("Host"),
    ]
    cells = [
        [
            Cell(row.label),
            *[Cell(f"{v:,.1f}", v) for v in (found.p50_us, found.p99_us, found.p999_us)],
            Cell(f"{found.samples:,}", found.samples),
            Cell(f"{found.discarded:,}", found.discarded),
            Cell(found.device),
            Cell(found.host),
        ]
        for row in rows
        if (found := row.latency)
    ]
    return render_table(columns, cells, caption="Latency of one inference, measured")


def _share_cell(share: float) -> Cell:
    return Cell(format_percent(share), share)


def _bytes_cell(size: int | None) -> Cell:
    return Cell(NONE) if size is None else Cell(format_bytes(size), size)


def _known_share_cell(share: float | None) -> Cell:
    if share is None:
        return Cell("unknown")
    return Cell(format_percent(share), share, tone="bad" if share > 1 else "")


def _memory_cell(mib: float | None) -> Cell:
    return Cell(NONE) if mib is None else Cell(format_bytes(mib * MIB), mib)


def _score_cell(value: float | None) -> Cell:
    known = finite(value)
    return Cell(format_loss(known), known) if known is not None else Cell(NONE if value is None else str(value))
