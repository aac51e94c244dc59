"""What makers' data sheets give as the peak of their devices, by name and arithmetic.

Dense, without sparsity, of the matrix units that torch uses: fp32 is the plain one, since TF32 is off by default.
Each row is from NVIDIA's data sheet of that product; a device that is not here is unknown.
"""

_TERA = 1e12
_SHEETS: dict[str, dict[str, float]] = {
    "NVIDIA H200": {"fp32": 67, "bf16": 989, "fp16": 989},
    "NVIDIA H100 80GB HBM3": {"fp32": 67, "bf16": 989, "fp16": 989},
    "NVIDIA H100 PCIe": {"fp32": 51, "bf16": 756, "fp16": 756},
    "NVIDIA A100-SXM4-80GB": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "NVIDIA A100-SXM4-40GB": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "NVIDIA A100 80GB PCIe": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "NVIDIA A100-PCIE-40GB": {"fp32": 19.5, "bf16": 312, "fp16": 312},
    "Tesla V100-SXM2-16GB": {"fp32": 15.7, "fp16": 125},
    "Tesla V100-SXM2-32GB": {"fp32": 15.7, "fp16": 125},
    "Tesla T4": {"fp32": 8.1, "fp16": 65},
}


def find_sheet_peak(device: str, dtype: str) -> float | None:
    """Operations a second of the device that its driver calls so; None for one that no sheet here tells of."""
    peak = _SHEETS.get(device, {}).get(dtype)
    return None if peak is None else peak * _TERA
