"""The noise of a layer: its formula, schemas, and errors that name the argument."""

import pytest
import torch

from marinenav_env.kernel import ops
from tests.marinenav_env.kernel.calls import OPS


def layer(device: str, kind: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """Arguments of `noisy_output`: a layer of 7 outputs, for 3 x 5 rows."""
    generator = torch.Generator().manual_seed(0)
    noise, spread, mean = torch.randn(3, 3, 5, 7, generator=generator).to(device)
    bias_spread, bias = torch.randn(2, 7, generator=generator).to(device)
    return {
        "noise": noise,
        "spread": spread.to(kind),
        "mean": mean.to(kind),
        "bias_spread": bias_spread,
        "bias": bias,
    }


def root(x: torch.Tensor) -> torch.Tensor:
    return x.double().sign() * x.double().abs().sqrt()


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_noise_enters_as_published(kind, device):
    arguments = layer(device, kind)
    noise, spread, mean, bias_spread, bias = (t.double() for t in arguments.values())
    found = ops.noisy_output(*arguments.values())
    expected = mean + root(noise) * spread + bias + root(noise) * bias_spread
    torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=1e-6)
    found = ops.noisy_input(arguments["noise"], arguments["spread"])
    torch.testing.assert_close(found.double(), root(noise) * spread, rtol=1e-6, atol=1e-6)
    assert found.dtype == torch.float32


def test_neither_has_a_gradient(device):
    arguments = {name: t.requires_grad_() for name, t in layer(device).items()}
    assert not ops.noisy_output(*arguments.values()).requires_grad
    assert not ops.noisy_input(arguments["noise"], arguments["spread"]).requires_grad


def test_opcheck(device):
    arguments = tuple(layer(device).values())
    torch.library.opcheck(OPS.noisy_output.default, arguments)
    torch.library.opcheck(OPS.noisy_input.default, arguments[:2])


def test_a_piece_of_a_larger_tensor_serves_as_well(device):
    arguments = layer(device)
    expected = ops.noisy_output(*arguments.values())
    arguments["mean"] = torch.stack((arguments["mean"], arguments["spread"]), -1)[..., 0]
    assert torch.equal(ops.noisy_output(*arguments.values()), expected)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("noise", lambda t: t.double(), "`noise` has dtype Double, expected a contiguous"),
        ("noise", lambda t: t.transpose(0, 1), "expected a contiguous tensor of Float"),
        ("spread", lambda t: t[..., :6], r"`spread` has shape \[3, 5, 6\]"),
        ("spread", lambda t: t.double(), "`spread` has .* dtype Double, expected"),
        ("mean", lambda t: t.bfloat16(), "`mean` has dtype BFloat16, expected Float as"),
        ("bias_spread", lambda t: t[:6], "both biases must be 7 of Float"),
        ("bias", lambda t: t.double(), "both biases must be 7 of Float"),
    ],
)
def test_what_does_not_fit_is_refused(name, spoil, message, device):
    arguments = layer(device)
    arguments[name] = spoil(arguments[name])
    with pytest.raises(RuntimeError, match=f"marinenav: .*{message}"):
        ops.noisy_output(*arguments.values())


def test_an_input_that_does_not_fit_is_refused(device):
    noise = layer(device)["noise"]
    with pytest.raises(RuntimeError, match=r"`x` has shape \[2, 5, 7\]"):
        ops.noisy_input(noise, noise[:2])
