"""Write a stage's settings file. A script, since a shell command may have 128 KiB and many trials' settings more."""

from pathlib import Path

job = snakemake  # noqa: F821  # Snakemake defines it before this text
Path(job.output.settings).write_text(job.params.text)
