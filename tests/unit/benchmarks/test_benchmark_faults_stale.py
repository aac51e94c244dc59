from benchmarks.faults_stale import BETWEEN, DEAD, FENCED, Case, Found, Order, is_publication, make_result
from benchmarks.faults_stale_slurm import NODE, SUPERVISOR, Lost


def found(*, published=(), harmed=(), code=FENCED):
    return Found(Case(BETWEEN, Order("trial", "log", True, point=7), DEAD, True), published, harmed, code)


def test_the_renaming_of_a_whole_checkpoint_is_told_from_that_of_its_files():
    assert is_publication("rename /checkpoints/.tmp-3-1-0d2f8ea5fbbd")
    assert not is_publication("rename /checkpoints/.tmp-3-1-0d2f8ea5fbbd/.manifest.tmp")
    assert not is_publication("rename /checkpoints/step-00000001")
    assert not is_publication("open /checkpoints/.tmp-3-1-0d2f8ea5fbbd")


def test_the_figure_is_the_share_of_writers_that_published():
    result = make_result([found(), found(published=("step-00000003",)), found(code=4), found(harmed=("step 4",))])
    assert result.figures == {"stale_publishes": 0.25}
    assert result.cases == {"stale_publishes": 4}
    rows = {row.name: row.median for row in result.rows}
    assert rows["published nothing: between question and renaming"] == 0.75
    assert rows["left all to its successor"] == 0.75
    assert rows["ended by the fence"] == 0.75


def test_jobs_whose_slurmd_was_killed_count_in_the_figure():
    lost = [Lost(SUPERVISOR, (), (), True), Lost(NODE, (12,), (), False)]
    result = make_result([found(), found()], lost)
    assert (result.figures, result.cases) == ({"stale_publishes": 0.25}, {"stale_publishes": 4})
    rows = {row.name: row.median for row in result.rows}
    assert rows[f"slurmd killed, {SUPERVISOR}: published nothing"] == 1
    assert rows[f"slurmd killed, {NODE}: ended by itself"] == 0
