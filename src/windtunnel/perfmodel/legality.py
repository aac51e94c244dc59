"""Which layouts a model of ours has a form for, from its settings alone. Pure."""

from windtunnel.settings.model import ModelSettings

TRANSFORMER = "windtunnel.models.transformer.CausalTransformer"
_HEADS = 4


def find_tensor_refusal(model: ModelSettings, *, window: int, tensor: int) -> str:
    """Why so many tensor-parallel ranks cannot divide this model, with the fix; empty when they can."""
    if tensor == 1:
        return ""
    if model.target != TRANSFORMER:
        return f"model {model.name!r} has no tensor-parallel form, expected parallelism.tensor=1, got {tensor}"
    heads = model.args.get("heads", _HEADS)
    for count, what, setting in ((heads, "heads", "model.args.heads"), (window, "rows of a window", "task.window")):
        if count % tensor:
            fits = next(size for size in range(min(tensor, count), 0, -1) if count % size == 0)
            return (
                f"{tensor} tensor-parallel ranks do not divide the {count} {what} of model {model.name!r}:"
                f" set parallelism.tensor={fits}, or {setting} to a multiple of {tensor}"
            )
    return ""
