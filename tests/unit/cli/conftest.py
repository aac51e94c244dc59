"""A project with one study that varies nothing: composing it takes one look at the configuration."""

import pytest


@pytest.fixture(scope="session")
def small_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    study = folder / "conf/study/small.yaml"
    study.parent.mkdir(parents=True)
    study.write_text("# @package _global_\ntraining:\n  steps: 10\n")
    return folder
