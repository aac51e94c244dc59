import pytest
from benchmarks.planner import PARTS, TABLES, run_published


@pytest.mark.skipif(not TABLES.is_dir(), reason=f"{TABLES} is not here")
def test_every_published_source_is_judged_and_the_model_beats_one_share_of_the_peak():
    found = run_published(True)
    (part,) = PARTS
    assert set(found.figures) == set(found.cases) == set(part.figures)
    assert found.cases["mape_vtrain"] == 904
    errors = {row.name: row.median for row in found.rows}
    for name, error in errors.items():
        if name.endswith(", error"):
            assert error < errors[f"{name} of one share of the peak"], name
