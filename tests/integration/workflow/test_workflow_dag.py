"""The DAG as Snakemake sees it: what it runs, what it runs again, and how it is written."""

import json
import re
import shutil
import subprocess
import sys

import yaml


def output(finished):
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout + finished.stderr


def rules_of(text):
    return set(re.findall(r"^(?:local)?rule (\w+):", text, re.MULTILINE)) - {"all"}


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_stage_is_rerun_when_a_value_that_it_uses_changed_and_only_then(workdir, snakemake, project_dir):
    profile = ("--profile", str(project_dir / "cluster_profiles/local"))
    assert "19 of 19 steps (100%) done" in output(snakemake(*profile, stand_in=True))
    with (workdir / "conf/training/quick.yaml").open("a") as file:
        file.write("# a thought\n")
    assert "Nothing to be done" in output(snakemake(*profile))
    replace(workdir / "conf/study/quickstart.yaml", "title: Quickstart", "title: Mine")
    assert rules_of(output(snakemake(*profile, "--dry-run"))) == {"settings", "report"}
    replace(workdir / "conf/study/quickstart.yaml", "title: Mine", "title: Quickstart")
    replace(workdir / "conf/training/quick.yaml", "steps: 60", "steps: 61")
    rerun = rules_of(output(snakemake(*profile, "--dry-run")))
    assert rerun == {"settings", "plan", "sweep", "verify_checkpoints", "latency", "report"}


def test_an_edit_of_a_users_model_reruns_what_its_code_can_change_and_nothing_above(workdir, snakemake, project_dir):
    template = project_dir / "workflow/template"
    for name in ("conf/study/mine.yaml", "conf/model/mine.yaml", "my_model.py"):
        shutil.copy(template / f"{name}.in", workdir / name)
    words = ("--profile", str(project_dir / "cluster_profiles/local"), "--config", "study=mine")
    output(snakemake(*words, stand_in=True))
    assert "Nothing to be done" in output(snakemake(*words))
    replace(workdir / "my_model.py", "hidden: int = 32", "hidden: int = 48")
    rerun = rules_of(output(snakemake(*words, "--dry-run")))
    assert rerun == {"trace", "plan", "sweep", "verify_checkpoints", "latency", "report"}


def test_settings_of_any_length_reach_their_file(workdir, snakemake):
    title = "it's 100% {long} " * 10_000
    replace(workdir / "conf/study/quickstart.yaml", "title: Quickstart", f"title: {json.dumps(title)}")
    output(snakemake("results/config/quickstart/report.yaml"))
    written = yaml.safe_load((workdir / "results/config/quickstart/report.yaml").read_text())
    assert written["report"]["title"] == title


def test_a_failed_sweep_shows_its_log_and_is_never_taken_for_done(workdir, snakemake, project_dir):
    profile = ("--profile", str(project_dir / "cluster_profiles/local"))
    finished = snakemake(*profile, stand_in=True, failing="sweep")
    text = finished.stdout + finished.stderr
    assert finished.returncode == 1
    assert "no sweep today" in text
    assert "Error in rule sweep" in text
    assert (workdir / "results/quickstart/plan.json").is_file()
    assert not (workdir / "results/quickstart/sweep.json").exists()


def test_the_workflow_passes_snakemakes_own_lint(snakemake):
    assert "good condition" in output(snakemake("--lint"))


def test_the_workflow_is_formatted(project_dir):
    argv = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow/rules"]
    finished = subprocess.run(argv, cwd=project_dir, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_every_rule_logs_and_every_job_asks_for_resources(project_dir):
    for path in (project_dir / "workflow/rules").glob("*.smk"):
        rules = f"\n{path.read_text()}".split("\nrule ")[1:]
        assert rules or path.name == "common.smk"
        for rule in rules:
            assert "\n    log:" in rule, path
            assert "\n    shell:" in rule or "\n    script:" in rule, path
            assert "localrule: True" in rule or "**job," in rule or "**measured," in rule, path
    assert len((project_dir / "workflow/rules/common.smk").read_text().splitlines()) < 60
