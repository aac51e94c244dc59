import math
from dataclasses import fields, replace

import pytest

from windtunnel.perfmodel.constants import Constants
from windtunnel.perfmodel.estimate import estimate_step
from windtunnel.perfmodel.layout import Recompute
from windtunnel.perfmodel.transformer import count_model_flops

CONSTANTS = Constants()


def time_step(job, **constants):
    return estimate_step(job, replace(CONSTANTS, **constants)).total_s


def tokens_per_s(job):
    layout = job.layout
    samples = layout.data * layout.micro_batch * layout.micro_batches
    return samples * job.model.seq / time_step(job) / layout.ranks


def test_the_parts_add_up_to_the_step(make_job):
    found = estimate_step(make_job(tensor=8, pipeline=8, data=4, micro_batches=32), CONSTANTS)
    assert math.fsum(getattr(found, field.name) for field in fields(found)) == pytest.approx(found.total_s)
    assert min(getattr(found, field.name) for field in fields(found)) > 0


def test_a_step_is_bounded_by_the_device_and_not_absurdly_far_from_it(make_job):
    job = make_job(tensor=8, pipeline=8, micro_batches=64)
    bound_s = count_model_flops(job.model, 64 * job.model.seq) / 64 / 312e12
    assert bound_s < time_step(job) < 3 * bound_s


def test_a_pipeline_waits_for_its_other_stages_as_published(make_job):
    found = estimate_step(make_job(pipeline=8, micro_batches=16), CONSTANTS)
    assert found.bubble_s / found.layers_s == pytest.approx(7 / 16)
    interleaved = estimate_step(make_job(pipeline=8, micro_batches=16, chunks=4), CONSTANTS)
    assert interleaved.bubble_s == pytest.approx(found.bubble_s / 4)


def test_tensor_parallelism_out_of_the_node_collapses(make_job):
    inside, outside = make_job(tensor=8), make_job(tensor=16)
    assert tokens_per_s(outside) < 0.7 * tokens_per_s(inside)


def test_the_same_tokens_on_more_nodes_are_slower_on_each(make_job):
    speeds = [tokens_per_s(make_job(tensor=8, data=data, micro_batches=64 / data)) for data in (1, 4, 16, 64)]
    assert speeds == sorted(speeds, reverse=True)
    assert speeds[-1] < 0.9 * speeds[0]


def test_recomputation_costs_a_third_of_the_layers_and_selective_a_little(make_job):
    none, selective, full = (
        estimate_step(make_job(tensor=8, recompute=recompute), replace(CONSTANTS, launch_s=1e-9)).layers_s
        for recompute in (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    )
    assert full / none == pytest.approx(4 / 3, rel=0.03)
    assert none < selective < 1.15 * none


def test_a_small_model_is_bound_by_its_launches_whatever_the_batch(make_job, gpt):
    small = replace(gpt, layers=24, width=512, heads=8, kv_heads=8, ffn_width=2048, seq=256)
    one, two = (time_step(make_job(small, micro_batch=batch), launch_s=1e-3) for batch in (1, 2))
    assert two == pytest.approx(one, rel=0.05)
    assert one == pytest.approx(2 * 24 * 1e-3, rel=0.2)


def test_a_ragged_width_costs_what_was_measured_of_it(make_job, gpt):
    ragged = replace(gpt, width=14400, heads=96, kv_heads=96)  # 1800 on each of eight ranks
    even, uneven = (time_step(make_job(ragged, tensor=8), misaligned=cost) for cost in (1.0, 1.5))
    assert 1.2 * even < uneven < 1.5 * even


def test_narrow_weights_leave_attention_and_output_as_they_were(make_job):
    wide, narrow = (time_step(make_job(device="H100-SXM-80GB", dtype=dtype), narrow=1.0) for dtype in ("bf16", "fp8"))
    assert 0.5 * wide < narrow < wide


def test_gathers_of_sharded_weights_hide_under_enough_work(make_job):
    def exposed(**more):
        return estimate_step(make_job(data=64, zero=3, **more), CONSTANTS).data_s

    assert exposed(micro_batch=16) == 0.0
    assert exposed(micro_batch=1) > 0.0


def test_groups_of_one_node_share_its_links(make_job):
    alone, shared = (
        estimate_step(make_job(data=64 // tensor, tensor=tensor), CONSTANTS).data_s * tensor for tensor in (1, 8)
    )
    # Eight groups reduce an eighth of the gradients each, at the same time, over the same links.
    assert shared == pytest.approx(8 * alone, rel=0.2)
