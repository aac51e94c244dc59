"""What placement is worth, how good the solver is, and whether topology files are understood."""

from benchmarks import placement_corpus, placement_ring, placement_solver

PARTS = (
    placement_ring.PART,
    placement_corpus.PART,
    placement_solver.SMALL_PART,
    placement_solver.LARGE_PART,
)
