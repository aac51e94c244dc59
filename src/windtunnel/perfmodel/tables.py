"""Measured runs from CSV files, one a row, as what the model needs to know of them.

The columns are those of a table of published runs: shape, layout, device, precision, and a step's time, tokens a
second, or memory. A cell that is empty was not published; a row that leaves out what is needed is passed over.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from windtunnel.errors import InputFileError
from windtunnel.perfmodel.estimate import Job
from windtunnel.perfmodel.hardware import Device, read_devices
from windtunnel.perfmodel.layout import Layout, Recompute
from windtunnel.perfmodel.transformer import Transformer

_VOCAB = 51_200
"""Of GPT-2, padded as Megatron does, where a row does not tell."""
_FAMILY = ("model", "n_layers", "d_model", "seq_len", "hardware", "precision", "n_gpus", "global_batch")
_LINKS = (re.compile(r"(\d+)x [^+]*?(\d+) ?Gb/s[^+]*per node"), re.compile(r"()(\d+) ?Gb(?:ps|/s)[ /]+(?:per )?node"))


@dataclass(frozen=True)
class Run:
    """One measured run."""

    source: str
    where: str
    """Of its publication."""
    family: str
    """The job that it is a layout of."""
    job: Job
    step_s: float | None
    memory_gib: float | None
    memory_kind: str
    node_bytes_per_s: float | None
    """Of a node's links to others, as published."""
    notes: str


def read_runs(path: Path) -> list[Run]:
    """All rows that tell of a shape, a layout and a known device; raises InputFileError for another kind of file."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputFileError(f"{path} cannot be read as a table of runs: {error}") from error
    missing = [name for name in (*_FAMILY, "tp", "pp", "micro_batch", "source") if rows and name not in rows[0]]
    if missing or not rows:
        told = f"lacks the columns {', '.join(missing)}" if rows else "has no rows"
        raise InputFileError(f"{path} {told}: expected one run a row, with the columns of docs/performance_model.md")
    return list(_parse_rows(rows))


def _parse_rows(rows: list[dict[str, str]]) -> Iterator[Run]:
    for row in rows:
        run = _parse_row(row)
        if run is not None:
            yield run


def _parse_row(row: Mapping[str, str]) -> Run | None:
    model, device = _parse_model(row), _find_device(row["hardware"])
    count, batch = _number(row, "n_gpus"), _number(row, "global_batch")
    if model is None or device is None or count is None or batch is None:
        return None
    layout = _parse_layout(row, count=count, batch=batch, device=device)
    tokens_per_s = _number(row, "tokens_per_s_per_gpu")
    step_s = _number(row, "step_time_s")
    if step_s is None and tokens_per_s:
        step_s = batch * model.seq / (tokens_per_s * count)
    return Run(
        source=row["source"],
        where=row.get("url_or_repo_path", ""),
        family="|".join(row[name] for name in _FAMILY),
        job=Job(model, layout, device, _find_dtype(row["precision"], device)),
        step_s=step_s,
        memory_gib=_number(row, "memory_gib"),
        memory_kind=row.get("memory_kind", ""),
        node_bytes_per_s=_parse_links(row.get("interconnect", "")),
        notes=row.get("notes", ""),
    )


def _parse_model(row: Mapping[str, str]) -> Transformer | None:
    width, seq = _number(row, "d_model"), _number(row, "seq_len")
    if width is None or seq is None:
        return None
    vocab = _number(row, "vocab") or (250_880 if "vocab ~250k" in row.get("notes", "") else _VOCAB)
    gated = "llama" in row["model"].lower()
    layers, params = _number(row, "n_layers"), _number(row, "n_params")
    if layers is None and params is not None:
        layers = round((params - vocab * width) / (12 * width * width))
    if layers is None:
        return None
    heads = int(_number(row, "n_heads") or width // 128)
    return Transformer(
        layers=int(layers),
        width=int(width),
        heads=heads,
        kv_heads=int(_number(row, "n_kv_heads") or heads),
        ffn_width=int(_number(row, "d_ff") or 4 * width),
        vocab=int(vocab),
        seq=int(seq),
        gated=gated,
        tied=not gated,
    )


def _parse_layout(row: Mapping[str, str], *, count: float, batch: float, device: Device) -> Layout:
    modern = "fp8" in device.peak_flops  # since Hopper every stack has fused attention and sequence parallelism
    node = int(_number(row, "gpus_per_node") or 8)
    tensor, pipeline, context = (int(_number(row, name) or 1) for name in ("tp", "pp", "cp"))
    data = int(_number(row, "dp") or max(1.0, count // (tensor * pipeline * context)))
    micro = int(_number(row, "micro_batch") or 1)
    recompute = row["activation_ckpt"].partition(":")[0]
    stage = row["zero_stage"]
    return Layout(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        context=context,
        chunks=int(_number(row, "vpp") or 1),
        sequence_parallel=row["sp"] == "1" if row["sp"] else modern,
        zero=3 if stage.endswith("3") or (_number(row, "fsdp") or 0) > 1 else int(stage) if stage.isdecimal() else 0,
        micro_batch=micro,
        micro_batches=batch / (data * micro),
        ranks_per_node=device.link_devices if device.link_devices > 8 else node,
        recompute=Recompute(recompute) if recompute in tuple(Recompute) else Recompute.NONE,
        fused_attention=row["attention_impl"].startswith(("flash", "fused")) if row["attention_impl"] else modern,
    )


def _find_device(told: str) -> Device | None:
    """The known device that `told` names with its first word; the smallest of them where it does not say which."""
    words = told.split()
    devices = read_devices()
    near = [name for name in devices if words and (name == words[0] or name.startswith(f"{words[0]}-"))]
    return min((devices[name] for name in near), key=lambda device: device.memory_bytes, default=None)


def _find_dtype(precision: str, device: Device) -> str:
    lower = precision.lower()
    marks = (dtype for dtype in ("fp4", "fp8", "bf16", "fp16") if dtype in lower and dtype in device.peak_flops)
    return next(marks, "fp16")


def _parse_links(told: str) -> float | None:
    for pattern in _LINKS:
        match = pattern.search(told)
        if match:
            return float(match[1] or 1) * float(match[2]) * 1e9 / 8
    return None


def _number(row: Mapping[str, str], name: str) -> float | None:
    try:
        return float(row.get(name) or "")
    except ValueError:
        return None
