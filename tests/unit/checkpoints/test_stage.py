import pytest
import torch

from windtunnel.checkpoints.stage import Stager


class Marked(torch.Tensor):
    """A tensor that is more than one, as those in shards over ranks are."""


def test_a_staged_tensor_keeps_what_it_was_when_it_changes():
    tensors = {
        "a": torch.ones(3),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "p": torch.nn.Parameter(torch.ones(2)),
    }
    staged = Stager().stage(tensors)
    with torch.no_grad():
        for tensor in tensors.values():
            tensor.zero_()
    assert staged["a"].tolist() == [1.0, 1.0, 1.0]
    assert staged["turned"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert staged["p"].tolist() == [1.0, 1.0]
    assert not staged["p"].requires_grad


def test_its_memory_is_kept_while_shape_and_dtype_are():
    stager = Stager()
    first = stager.stage({"a": torch.ones(3), "b": torch.ones(3), "c": torch.ones(3)})
    second = stager.stage({"a": torch.zeros(3), "b": torch.zeros(4), "c": torch.zeros(3, dtype=torch.bfloat16)})
    assert [first[name].data_ptr() == second[name].data_ptr() for name in "abc"] == [True, False, False]
    assert second["c"].dtype == torch.bfloat16
    assert set(stager.stage({"a": torch.ones(3)})) == {"a"}


def test_a_part_of_a_large_tensor_takes_the_room_of_the_part():
    staged = Stager().stage({"part": torch.arange(1000)[10:12]})
    assert staged["part"].tolist() == [10, 11]
    assert staged["part"].untyped_storage().nbytes() == 16


def test_a_tensor_that_is_more_stays_what_it_is():
    marked = torch.ones(3).as_subclass(Marked)
    staged = Stager().stage({"a": marked, "b": torch.zeros(1)})
    marked.zero_()
    assert isinstance(staged["a"], Marked)
    assert staged["a"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.bfloat16, torch.float32, torch.complex128])
def test_any_length_and_alignment_is_copied_whole_and_nothing_beside_it(dtype):
    whole = torch.arange(2000).remainder(251).to(dtype)
    for offset in (0, 1, 3, 17):
        for length in (0, 1, 15, 63, 64, 65, 200, 1000):
            part = whole[offset : offset + length]
            assert torch.equal(Stager().stage({"part": part})["part"], part)


def test_a_conjugate_or_negative_view_is_staged_as_what_it_reads():
    value = torch.tensor([1 + 2j, 3 - 4j])
    staged = Stager().stage({"conjugate": value.conj(), "imaginary": value.conj().imag})
    assert staged["conjugate"].tolist() == [1 - 2j, 3 + 4j]
    assert staged["imaginary"].tolist() == [-2.0, 4.0]
