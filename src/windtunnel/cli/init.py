"""Begin a user's own project: files that are theirs to edit, and nothing of ours copied."""

from pathlib import Path

from windtunnel.cli.project import project_root
from windtunnel.errors import InputFileError

_TEMPLATE = "template"


def run_init(folder: Path) -> None:
    """Write a project into `folder`; raises InputFileError where there is something in it already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputFileError(f"{folder} is not an empty folder: name a new one")
    template = project_root() / "workflow" / _TEMPLATE
    for source in sorted(path for path in template.rglob("*") if path.is_file()):
        # A template is no Snakefile of ours and no file that pytest or Python should find: `.in` says so.
        target = folder / source.relative_to(template).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        print(f"wrote {target}", flush=True)
    print(f"Next: cd {folder} && snakemake --cores 2", flush=True)
