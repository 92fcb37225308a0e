# SPDX-License-Identifier: GPL-2.0-or-later
"""The model itself: published test vectors, and what it says about itself."""
import pytest

from packets import model

pytestmark = pytest.mark.model


def test_siphash():
    """Appendix A of the SipHash paper, and a whole number of words."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert model.siphash(key, bytes(range(15))) == 0xA129CA6149BE45E5
    assert model.siphash(key, bytes(range(8))) == 0x93F5F5799A932462


def test_hkdf():
    """RFC 5869, test case 3: no salt, no info; and test case 1."""
    okm = model.hkdf_sha256(b"\x0b" * 22, b"", 42)
    assert okm.hex() == ("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                         "9d201395faa4b61a96c8")
    okm = model.hkdf_sha256(b"\x0b" * 22, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9"), 42, bytes(range(13)))
    assert okm.hex().startswith("3cb25f25faacd57a90434f64d0362f2a")


def test_cookie_fields():
    options = model.Options(mss=1460, wscale=7, sack=True, ecn=True)
    cookie, _ = model.cookie((1, 2), 3, 13, 4, options)
    assert cookie >> 29 == 13 & 7
    assert cookie >> 10 & 0xFF == 3 | 7 << 2 | 1 << 6 | 1 << 7
    assert model.Options().packed() == 15 << 2


def test_cookie_is_of_its_flow():
    options = model.Options(mss=1460, wscale=7, sack=True)
    for slot in range(20, 28):
        cookie, _ = model.cookie((1, 2), 3, slot, 4, options)
        assert all(model.is_of_flow((1, 2), 3, now, cookie) for now in range(slot - 1, slot + 7))
        assert not model.is_of_flow((1, 2), 3, slot, cookie ^ 1)
        assert not model.is_of_flow((1, 2), 5, slot, cookie)


def test_handover_round_trip():
    message = model.Handover(packet=b"x" * 45, sequence=1 << 40, nack=3)
    packed = message.pack((5, 6))
    assert len(packed) == model.Handover.SIZE + 45
    parsed = model.Handover.parse(packed)
    assert parsed.authentic(model.Keys((0, 0), handover=[(7, 8), (5, 6)]))
    assert not parsed.authentic(model.Keys((0, 0), handover=[(7, 8)]))


def test_ring_walk():
    ring = model.Ring(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert sorted(ring.walk(1 << 63)) == [0, 1, 2]
    assert ring.walk(1 << 63)[0] == ring.at(1 << 63)
    assert ring.at(0) == ring.nodes[-1] if ring.positions[0] else ring.nodes[0]
