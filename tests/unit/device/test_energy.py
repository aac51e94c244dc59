from windtunnel.device.energy import count_joules, read_rapl


def _write(root, zone, energy_uj, range_uj=999_999_999):
    (root / zone).mkdir(parents=True, exist_ok=True)
    (root / zone / "energy_uj").write_text(f"{energy_uj}\n")
    (root / zone / "max_energy_range_uj").write_text(f"{range_uj}\n")


def test_packages_add_up_and_their_parts_do_not_count_twice(tmp_path):
    _write(tmp_path, "intel-rapl:0", 1_000_000)
    _write(tmp_path, "intel-rapl:1", 5_000_000)
    _write(tmp_path, "intel-rapl:0:0", 700)
    before = read_rapl(tmp_path)
    _write(tmp_path, "intel-rapl:0", 4_000_000)
    _write(tmp_path, "intel-rapl:1", 5_500_000)
    assert count_joules(before, read_rapl(tmp_path)) == 3.5


def test_a_counter_that_began_again_goes_on(tmp_path):
    _write(tmp_path, "intel-rapl:0", 999_000_000)
    before = read_rapl(tmp_path)
    _write(tmp_path, "intel-rapl:0", 1_000_000)
    assert count_joules(before, read_rapl(tmp_path)) == 2.0


def test_without_a_source_that_may_be_read_the_energy_is_unknown(tmp_path):
    assert read_rapl(tmp_path / "none") == {}
    (tmp_path / "intel-rapl:0").mkdir()
    assert read_rapl(tmp_path) == {}
    assert count_joules({}, {}) is None
