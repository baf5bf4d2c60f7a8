"""Known octets that the encoder must produce. `make.py` checks them before it writes files."""
import struct

from .iwarp import Stream, crc32c, tagged, untagged


def check():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    # RFC 5044, Figures 5 and 6: two FPDUs with markers.
    stream = Stream(markers=True)
    first = stream.fpdu(untagged(3, 0, 1, 0) + bytes(24))
    assert first[:8] == bytes.fromhex("00000000002a4143") and first[-4:].hex() == "52239983"
    stream.position = 0x1EC
    second = stream.fpdu(untagged(3, 0, 2, 0) + bytes(24))
    assert second[20:24] == bytes.fromhex("00000014") and second[-4:].hex() == "84925898"
    # A marker between PAD and CRC, and a marker after four octets.
    stream.position = 488
    third = stream.fpdu(tagged(0, 0x11223344, 0x1000) + bytes([1, 2, 3, 4, 5]))
    assert third[-8:].hex() == "000000182a1da437"
    stream.position = 508
    fourth = stream.fpdu(untagged(3, 0, 1, 0) + bytes(range(8)))
    assert fourth[4:8].hex() == "00000004" and fourth[-4:].hex() == "43df15f1"
    # A Terminate with the header of a Write.
    body = struct.pack(">HBBH", 0x1100, 0xC0, 0, 0x1E) + tagged(0, 0xDEADBEEF, 0x2000)
    assert Stream().fpdu(untagged(7, 2, 1, 0) + body)[-4:].hex() == "3c221dc5"
