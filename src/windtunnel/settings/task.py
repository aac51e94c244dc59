"""Settings of a task: what a model is asked to forecast, and how its data is split in time."""

from typing import Literal, Self

from pydantic import Field, model_validator

from windtunnel.settings.base import Settings


class TaskSettings(Settings):
    name: Literal["direction_volatility"] = "direction_volatility"
    """`direction_volatility`: the sign of the next return, and the realised volatility of the next rows."""
    window: int = Field(default=32, ge=2)
    """Rows of history that a sample shows the model."""
    horizon: int = Field(default=5, ge=1)
    """Rows over which realised volatility is taken. Samples closer than this to a split are dropped."""
    train_fraction: float = Field(default=0.7, gt=0, lt=1)
    """Share of the time range, from its start, that is trained on."""
    validation_fraction: float = Field(default=0.15, gt=0, lt=1)
    """Share after it that is evaluated; the rest is the test range."""
    volatility_weight: float = Field(default=0.5, ge=0)
    """Weight of the volatility loss beside the direction loss."""

    @model_validator(mode="after")
    def _leave_a_test_range(self) -> Self:
        if self.train_fraction + self.validation_fraction >= 1:
            raise ValueError(
                f"task.train_fraction={self.train_fraction} and task.validation_fraction={self.validation_fraction}"
                " leave nothing to test on: lower one until their sum is below 1"
            )
        return self
