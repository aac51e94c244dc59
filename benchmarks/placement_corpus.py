"""How many files of the topology corpus are understood as its index says, fact by fact."""

from benchmarks.harness import ROOT, Part, PartResult, make_share_row
from windtunnel.fabric.corpus import check_corpus

CORPUS = ROOT.parent / "shared" / "cases" / "topology"


def run_corpus(quick: bool) -> PartResult:
    """All files, also when quick: they take a second."""
    del quick
    good = [not checked.differences for checked in check_corpus(CORPUS)]
    row = make_share_row("corpus files whose facts are all right", good)
    return PartResult({"corpus_fraction": row.median}, {"corpus_fraction": row.count}, (row,))


PART = Part(
    name="corpus",
    figures=("corpus_fraction",),
    measures=("fabric", "gres.py", "slurmtext.py", "hostlist.py", "benchmarks/placement_corpus.py"),
    run=run_corpus,
)
