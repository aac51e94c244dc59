"""The axes of a parallel layout with the bytes that one training step sends along each. Pure arithmetic.

Sources: tensor parallelism reduces twice in the forward and twice in the backward pass of a layer (Shoeybi et al.
2019; with sequence parallelism as many bytes, Korthikanti et al. 2022); fully sharded data parallelism gathers
parameters twice and scatters gradients once (Rajbhandari et al. 2020, stage 3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from windtunnel.fabric.traffic import Axis, ring_bytes

AXES = ("tp", "cp", "pp", "shard", "dp")
"""The order of the ranks: tp varies fastest. dp replicates, `shard` shards: both are HSDP, one alone DDP or FSDP."""


@dataclass(frozen=True)
class StepTraffic:
    """What one step of one rank holds and how much of its communication computing hides."""

    gradient_bytes: float
    """Of the parameters that a rank of this tp and pp trains, before any sharding."""
    parameter_bytes: float = 0.0
    """Of the same in the precision in which they are gathered."""
    activation_bytes: float = 0.0
    """Of a micro-batch of the whole sequence between two layers, on one cp rank."""
    key_value_bytes: float = 0.0
    """That context parallelism hands around, a layer and micro-batch."""
    layers: int = 1
    """Of a pipeline stage."""
    micro_batches: int = 1
    buckets: int = 1
    """Into which gradients are cut."""
    exposed: Mapping[str, float] = field(default_factory=dict)
    """Share by axis that computing does not hide; all of it where nothing is said."""


def list_layout_axes(
    degrees: Mapping[str, int], traffic: StepTraffic, *, hierarchical: bool = False
) -> tuple[Axis, ...]:
    """All five axes in the order of the ranks; one of a degree that is not given is 1 and sends nothing."""
    sizes = {name: degrees.get(name, 1) for name in AXES}
    made = {
        "tp": _tensor(sizes["tp"], traffic),
        "cp": _context(sizes["cp"], traffic),
        "pp": _pipeline(sizes["pp"], sizes["tp"], traffic),
        "shard": _shard(sizes["shard"], traffic),
        "dp": _replicate(sizes["dp"], sizes["shard"], traffic, hierarchical=hierarchical),
    }
    return tuple(made[name] for name in AXES)


def _tensor(n: int, traffic: StepTraffic) -> Axis:
    reductions = 4 * traffic.layers * traffic.micro_batches
    sent = reductions * ring_bytes("all_reduce", traffic.activation_bytes, n)
    return _axis("tp", n, sent, reductions * 2 * (n - 1), traffic)


def _context(n: int, traffic: StepTraffic) -> Axis:
    """Each rank hands its part around, forward; and with its gradients back."""
    rounds = 2 * traffic.layers * traffic.micro_batches
    return _axis("cp", n, rounds * traffic.key_value_bytes * (n - 1), rounds * (n - 1), traffic)


def _pipeline(n: int, tensor: int, traffic: StepTraffic) -> Axis:
    """Each tp rank sends its part of the activations on, and of their gradients back."""
    messages = 2 * traffic.micro_batches
    exposed = traffic.exposed.get("pp", 1.0)
    sent = messages * traffic.activation_bytes / tensor if n > 1 else 0.0
    return Axis("pp", n, "chain", sent, messages, exposed)


def _shard(n: int, traffic: StepTraffic) -> Axis:
    gathered = 2 * ring_bytes("all_gather", traffic.parameter_bytes, n)
    scattered = ring_bytes("reduce_scatter", traffic.gradient_bytes, n)
    return _axis("shard", n, gathered + scattered, 3 * traffic.layers * (n - 1), traffic)


def _replicate(n: int, shard: int, traffic: StepTraffic, *, hierarchical: bool) -> Axis:
    sent = ring_bytes("all_reduce", traffic.gradient_bytes / shard, n)
    axis = _axis("dp", n, sent, traffic.buckets * 2 * (n - 1), traffic)
    return Axis(axis.name, n, "hierarchical", axis.bytes, axis.messages, axis.exposed) if hierarchical else axis


def _axis(name: str, n: int, sent: float, messages: float, traffic: StepTraffic) -> Axis:
    return Axis(name, n, "ring", sent, messages, traffic.exposed.get(name, 1.0))
