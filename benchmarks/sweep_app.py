"""A Hydra application whose trials do nothing, or are killed. A script of its own: launchers pickle its function."""

import os
import signal

import hydra
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig

ConfigStore.instance().store(name="nothing", node={"trial": 0, "killed": []})


@hydra.main(version_base=None, config_path=None, config_name="nothing")
def main(config: DictConfig) -> int:
    """The trial's own number; those in `killed` end as a trial does that the kernel or an operator kills."""
    if config.trial in config.killed:
        os.kill(os.getpid(), signal.SIGKILL)
    return int(config.trial)


if __name__ == "__main__":
    main()
