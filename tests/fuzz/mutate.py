# SPDX-License-Identifier: Apache-2.0
"""A small mutator of bytes for the runs without atheris: deterministic for a seed, blind to coverage."""

import random

TOKENS = [
    *(bytes([code]) for code in b"{}[]\",:'\\/*#&!|>-<=@%$~`.;() \t\n\r\0\x1b\x7f\x80\xc0\xff0_a"),
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xae", b"\xe2\x80\x8b", b"\xff\xfe",
    b"//", b"/*", b"*/", b",}", b",]", b"\\ud83d", b"\\uDE00", b"\\u0000", b"\\\\", b'\\"', b'""', b"''", b'"""',
    b"null", b"true", b"false", b"NaN", b"Infinity", b"-0", b"1e999", b"0x1f", b"9" * 40, b"1_0", b"22:22", b"off",
    b"---\n", b"...\n", b"- ", b": ", b"? ", b"<<: ", b"&a ", b"*a", b"!!python/object:x ", b"%YAML 1.1\n", b"|\n ",
    b"[[a]]\n", b"[a.b]\n", b"a.b = 1\n", b"1979-05-27", b"<!DOCTYPE a>", b"<![CDATA[", b"]]>", b"&amp;", b"&#x0;",
    b"<!--", b"-->", b"<?x ?>", b"</", b"/>", b"xmlns=", b'"mcpServers"', b'"command"', b'"args"', b'"url"', b'"env"',
    b'"type"', b'"disabled"', b'"enabled"', b"https://", b"xn--", b"@", b"CANARYmutant",
]  # fmt: skip


def mutate(dice: random.Random, data: bytes, others: list[bytes], most: int = 65536) -> bytes:
    """One mutant of `data`; `others` are spliced in now and then."""
    out = bytearray(data)
    for _ in range(1 + int(dice.expovariate(0.5))):
        _step(dice, out, others)
    return bytes(out[:most])


def _step(dice, out, others):
    at = dice.randrange(len(out) + 1)
    span = min(len(out) - at, 1 + int(dice.expovariate(0.1)))
    kind = dice.randrange(9)
    if kind == 0:
        out[at : at + span] = b""
    elif kind in {1, 2}:
        out[at:at] = dice.choice(TOKENS)
    elif kind == 3:
        out[at : at + span] = dice.choice(TOKENS)
    elif kind == 4 and out:
        out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    elif kind == 5:
        to = dice.randrange(len(out) + 1)
        out[to:to] = out[at : at + span]
    elif kind == 6 and others:
        other = dice.choice(others)
        start = dice.randrange(len(other) + 1)
        out[at:at] = other[start : start + 1 + int(dice.expovariate(0.02))]
    elif kind == 7:
        out[at:at] = dice.choice(TOKENS) * dice.choice([2, 17, 300, 1200])
    else:
        out[at : at + span] = dice.randbytes(span)
