"""Import torch and our kernels as a rank does, timed, and print what was found as one line of JSON."""

import json
import time


def main() -> None:
    """Raises whatever does not import; the kernel's result is compared with plain PyTorch's."""
    began = time.perf_counter()
    import torch

    torch_s = time.perf_counter() - began
    from windtunnel.device.accelerator import count_accelerators
    from windtunnel.kernels.fused import Feature, fused_features

    x_tc = torch.arange(64.0, dtype=torch.float64).reshape(16, 4).sin()
    features = [Feature(moment, 4, 2) for moment in ("mean", "std", "zscore")]
    ours, plain = (fused_features(x_tc, features, backend=backend) for backend in ("auto", "reference"))
    agree = bool(torch.allclose(ours, plain, equal_nan=True))
    facts = {
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "devices": count_accelerators(),
        "kernels_agree": agree,
        "torch_s": torch_s,
        "all_s": time.perf_counter() - began,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
