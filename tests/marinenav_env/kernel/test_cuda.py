"""CUDA against the CPU, and against itself with other block sizes. Skipped without a GPU."""

import hashlib

import pytest
import torch

from marinenav_env.envs.marine import MarineNavEnv
from marinenav_env.envs.scenarios import PUBLISHED_STAGES
from marinenav_env.kernel import ops
from marinenav_env.stepper import Stepper
from tests.conftest import ROOT, run_python
from tests.host_reads import no_host_reads
from tests.marinenav_env.rollouts import CROWDED, SPARSE, actions, eventful, record, same_bits

pytestmark = pytest.mark.skipif(
    not (torch.cuda.is_available() and ops.has_cuda()), reason="needs CUDA and its operators"
)
WORLDS = 200


def make_env(device: str, **options) -> MarineNavEnv:
    """Worlds of three stages."""
    stages = (CROWDED, SPARSE, PUBLISHED_STAGES[5])
    env = MarineNavEnv(WORLDS, stages=stages, config=eventful(), device=device, seed=3, **options)
    env.set_stage(torch.arange(WORLDS, device=device) % 3)
    return env


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("discrete", [False, True])
def test_cuda_agrees_with_the_cpu_after_each_step(dtype, discrete):
    """From the same state: placements and flags equal, floats to 1e-5 (1e-12 in float64).

    Only libm differs between the devices; float32 uses the same polynomials on both.
    """
    limit = 1e-5 if dtype == torch.float32 else 1e-12
    envs = [make_env(device, dtype=dtype, discrete=discrete) for device in ("cpu", "cuda")]
    steppers = [Stepper(env) for env in envs]
    for stepper in steppers:
        stepper.reset()
    cpu, cuda = envs
    assert same_bits(cpu.state.world, cuda.state.world.cpu())
    for name in ("buoy", "vortex", "robot"):
        a, b = getattr(cpu.state, name), getattr(cuda.state, name).cpu()
        torch.testing.assert_close(a, b, rtol=limit, atol=limit)
    for t in range(40):
        for tensor in (*cuda.kernel_spec.state, *cuda.kernel_spec.tables):
            getattr(cuda.state, tensor.name).copy_(getattr(cpu.state, tensor.name))
        outs = [stepper.step(actions(cpu, t).to(stepper.env.device)) for stepper in steppers]
        for name in ("acted", "terminated", "truncated", "done"):
            assert same_bits(getattr(outs[0], name), getattr(outs[1], name).cpu()), name
        assert same_bits(outs[0].obs.mask, outs[1].obs.mask.cpu())
        pairs = [(outs[0].reward, outs[1].reward), (cpu.state.robot, cuda.state.robot)]
        pairs += list(zip(outs[0].obs, outs[1].obs, strict=True))
        for a, b in pairs:
            a, b = a[..., :WORLDS], b[..., :WORLDS].cpu()
            torch.testing.assert_close(a, b, rtol=limit, atol=limit)
        for stepper in steppers:
            stepper.advance()


def test_random_bits_are_the_same_on_both_devices():
    counter = torch.randint(0, 2**32, (500, 4))
    expected = ops.philox(counter, (123, 456))
    assert torch.equal(ops.philox(counter.cuda(), (123, 456)).cpu(), expected)


def rollout_digest() -> str:
    """Digest of all bits of a rollout on the GPU, for the block size of this process."""
    digest = hashlib.sha256()
    for dtype in (torch.float32, torch.float64):
        for name, rows in sorted(record(make_env("cuda", dtype=dtype, stack_k=2), 60).items()):
            digest.update(name.encode())
            digest.update(rows.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


def test_block_size_changes_no_bit():
    """What a race between threads would."""
    digests = []
    for size in (32, 256):  # beside the default in this process
        program = (
            "from tests.marinenav_env.kernel import test_cuda; print(test_cuda.rollout_digest())"
        )
        said = run_python(ROOT, "-c", program, MARINENAV_BLOCK_SIZE=str(size))
        digests.append(said.split()[-1])
    assert len({rollout_digest(), *digests}) == 1


def test_whole_loop_under_sync_debug_mode():
    """CUDA itself raises if the host waits for the device."""
    env = make_env("cuda")
    stepper = Stepper(env)
    action = actions(env, 0)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):
            action.sum().item()
        with no_host_reads():
            stepper.reset()
            for _ in range(40):
                stepper.step(action)
                stepper.advance()
            env.set_stage(torch.zeros(WORLDS, device="cuda", dtype=torch.int64))
            env.read_stats()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_steps_replay_from_a_graph():
    """Everything that changes lives on the device: a captured step continues by itself."""
    eager, graphed = make_env("cuda"), make_env("cuda")
    expected = record(eager, 40)
    buffers = [graphed.make_buffers(), graphed.make_buffers()]
    action = actions(graphed, 0)
    graphed.reset_into(buffers[1])
    saved = graphed.state_dict()
    graphs = []
    for previous, out in (buffers[::-1], buffers):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            graphed.step_into(action, previous, out)
            graphed.reset_into(out, out.done)
        graphs.append(graph)
    graphed.load_state_dict(saved)
    for t in range(40):
        action.copy_(actions(graphed, t))
        graphs[t % 2].replay()
        out = buffers[t % 2]
        assert same_bits(out.obs.ego, expected["current.ego"][t])
        assert same_bits(out.reward, expected["reward"][t])
