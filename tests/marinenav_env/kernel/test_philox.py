"""The generator of random words: known answers, and what it refuses."""

import pytest
import torch

from marinenav_env.kernel import ops
from tests.marinenav_env.kernel.calls import OPS


def test_opcheck_philox(device):
    counter = torch.arange(8, device=device).view(2, 4)
    torch.library.opcheck(OPS.philox.default, (counter, 1, 2))


def test_known_answers_of_philox(device):
    """Vectors of the Random123 library: zeros, all ones, the digits of pi."""
    ones = 0xFFFFFFFF
    known = [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([ones] * 4, (ones, ones), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ]
    for counter, key, words in known:
        assert ops.philox(torch.tensor([counter], device=device), key).tolist() == [words]


def test_philox_wants_four_words(device):
    with pytest.raises(RuntimeError, match=r"`counter` has shape \[2, 3\], expected \[N, 4\]"):
        ops.philox(torch.zeros(2, 3, dtype=torch.int64, device=device), (0, 0))


def test_philox_of_nothing(device):
    nothing = torch.zeros(0, 4, dtype=torch.int64, device=device)
    assert ops.philox(nothing, (0, 0)).shape == (0, 4)


@pytest.mark.parametrize("key", [(2**32, 0), (0, 2**32), (-1, 0)])
def test_philox_wants_a_key_of_32_bit_words(key, device):
    with pytest.raises(RuntimeError, match=rf"`key` holds {max(key, key=abs)}, which is no 32-bit"):
        ops.philox(torch.zeros(1, 4, dtype=torch.int64, device=device), key)
