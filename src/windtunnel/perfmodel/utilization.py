"""How much of a device's peak a training step uses: MFU and HFU, against each of two peaks. Pure."""

from dataclasses import dataclass

from windtunnel.records.meter import StepWork


@dataclass(frozen=True)
class Peak:
    """Operations a second of one device in a trial's arithmetic; None where it is not known."""

    measured: float | None = None
    """By calibrate, on this very kind of device."""
    sheet: float | None = None
    """By its maker."""


@dataclass(frozen=True)
class Utilization:
    """Shares of peaks; None where anything that it takes is unknown, never a guess."""

    mfu_measured: float | None = None
    mfu_sheet: float | None = None
    hfu_measured: float | None = None
    hfu_sheet: float | None = None

    @property
    def alarms(self) -> tuple[str, ...]:
        """What cannot be: more than a peak."""
        named = {
            "MFU against the measured peak": self.mfu_measured,
            "MFU against the data sheet": self.mfu_sheet,
            "HFU against the measured peak": self.hfu_measured,
            "HFU against the data sheet": self.hfu_sheet,
        }
        return tuple(
            f"{name} is {share:.0%}, expected at most 100 %: the peak was measured with fewer threads or on a busy"
            " machine (calibrate again), or the operations are counted wrong"
            for name, share in named.items()
            if share is not None and share > 1
        )


def find_utilization(work: StepWork, *, step_s: float, devices: int, peak: Peak) -> Utilization:
    """Of a step that took `step_s` on so many devices together."""
    return Utilization(
        mfu_measured=_share(work.model_flops, step_s, devices, peak.measured),
        mfu_sheet=_share(work.model_flops, step_s, devices, peak.sheet),
        hfu_measured=_share(work.hardware_flops, step_s, devices, peak.measured),
        hfu_sheet=_share(work.hardware_flops, step_s, devices, peak.sheet),
    )


def _share(flops: float | None, step_s: float, devices: int, peak: float | None) -> float | None:
    if flops is None or not peak or step_s <= 0:
        return None
    return flops / step_s / (devices * peak)
