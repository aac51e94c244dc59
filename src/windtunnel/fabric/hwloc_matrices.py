"""Distances in hwloc's XML: matrices between objects of one type or of several, values in pieces. Pure."""

from xml.etree import ElementTree

from windtunnel.fabric.machine import Matrix
from windtunnel.fabric.topology import Finding


def read_matrices(root: ElementTree.Element, findings: list[Finding]) -> tuple[Matrix, ...]:
    """Every matrix; one whose values do not fill it has none, and a finding."""
    found = [_read_matrix(element, findings) for element in root if element.tag in ("distances2", "distances2hetero")]
    return (*found, *(_read_old(element) for element in root.iter("distances")))


def _read_matrix(element: ElementTree.Element, findings: list[Finding]) -> Matrix:
    name = element.get("name") or element.get("type") or "distances"
    kind = element.get("type", "")
    words = " ".join(part.text or "" for part in element.findall("indexes")).split()
    objects = tuple(f"{kind}:{word}" if kind else word for word in words)
    texts = " ".join(part.text or "" for part in element.findall("u64values")).split()
    values = tuple(int(text[:20]) for text in texts if text.isdecimal())
    wanted = element.get("nbobjs", "")
    whole = len(values) == len(texts) == len(objects) ** 2 and wanted == str(len(objects))
    if not whole:
        text = f"matrix {name} of {wanted or 'unknown'} objects has {len(objects)} names and {len(texts)} values"
        findings.append(Finding("warning", "short-matrix", text))
    return Matrix(name, objects, values if whole else ())


def _read_old(element: ElementTree.Element) -> Matrix:
    """hwloc 1: latencies relative to a base, between the objects at a depth."""
    texts = [latency.get("value", "") for latency in element.findall("latency")]
    try:
        base = float(element.get("latency_base", "1"))
        values = tuple(round(base * float(text)) for text in texts)
    except (ValueError, OverflowError):
        values = ()
    return Matrix("latency", (), values)
