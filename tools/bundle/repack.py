"""An installed distribution as the wheel that it was installed from, as far as an installation tells it."""

import zipfile
from importlib.metadata import Distribution, PackagePath, distribution
from pathlib import Path, PurePosixPath

# Written by the installer, not by the wheel.
_INSTALLERS = {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD"}


def repack_distribution(name: str, folder: Path) -> Path:
    """Write the wheel of an installed distribution into `folder`, uncompressed: it is read once."""
    found = distribution(name)
    wheel = folder / f"{found.name.replace('-', '_')}-{found.version}-{_tag(found)}.whl"
    info = _info_folder(found)
    records = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in found.files or []:
            inside = _name_in_wheel(file, found)
            if inside is not None:
                # A file may be older than the first year that a zip archive can name.
                archive.writestr(zipfile.ZipInfo(inside), Path(str(file.locate())).read_bytes())
                records.append(f"{inside},{_hash(file)},{file.size or ''}\n")
        archive.writestr(f"{info}/RECORD", "".join([*records, f"{info}/RECORD,,\n"]))
    return wheel


def _name_in_wheel(file: PackagePath, found: Distribution) -> str | None:
    path = PurePosixPath(file)
    if path.suffix == ".pyc" or path.name in _INSTALLERS:
        return None
    if path.parts[0] != "..":
        return str(path)
    outside = [part for part in path.parts if part != ".."]
    data = f"{_info_folder(found).removesuffix('.dist-info')}.data"
    if outside[0] == "include":  # include/site/python3.11/<name>/...
        return f"{data}/headers/{'/'.join(outside[4:])}"
    if outside[0] != "bin":
        return f"{data}/data/{'/'.join(outside)}"
    # Those of entry points are written again by the installer.
    return None if outside[-1] in {point.name for point in found.entry_points} else f"{data}/scripts/{outside[-1]}"


def _tag(found: Distribution) -> str:
    lines = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag:").strip().split("-") for line in lines if line.startswith("Tag:")]
    return "-".join(".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True))


def _info_folder(found: Distribution) -> str:
    return next(file.parts[0] for file in found.files or [] if file.parts[0].endswith(".dist-info"))


def _hash(file: PackagePath) -> str:
    return f"{file.hash.mode}={file.hash.value}" if file.hash is not None else ""
