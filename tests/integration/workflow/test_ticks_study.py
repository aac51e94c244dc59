"""The study `ticks` through the whole DAG: real quotes and trades, cut to 200,000 rows a file."""

import json
import subprocess
import sys

import pytest


@pytest.mark.shared
def test_a_day_of_one_sided_quotes_becomes_a_ranking(workdir, project_dir, shared_dir):
    folder = workdir / "project"
    folder.mkdir()
    (workdir / "conf").rename(folder / "conf")
    (workdir / "shared").symlink_to(shared_dir)
    argv = [sys.executable, "-m", "snakemake", "--snakefile", str(project_dir / "Snakefile")]
    argv += ["--profile", str(project_dir / "cluster_profiles/local")]
    argv += ["--config", "study=ticks", "overrides=+debug=fast"]
    finished = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=500)
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-4000:]

    manifest = json.loads((folder / "results/shards/lean_aig_200k/MANIFEST.json").read_text())["content"]
    counts = {item["path"].rpartition("_")[2]: item for item in manifest["inputs"]}
    assert counts["quote.zip"]["rows_in"] == 200_000
    assert counts["trade.zip"]["rows_in"] == 52_008
    assert all(item["rows_in"] == item["rows_kept"] + item["rows_quarantined"] for item in manifest["inputs"])
    sweep = json.loads((folder / "results/ticks/sweep.json").read_text())["content"]
    assert [entry["verdict"] for entry in sweep["entries"]] == ["COMPLETED", "COMPLETED"]
    assert all(entry["outcome"]["final_train_loss"] > 0 for entry in sweep["entries"])
    assert (folder / "results/ticks/report.html").stat().st_size > 1_000_000
