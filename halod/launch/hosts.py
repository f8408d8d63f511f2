# SPDX-License-Identifier: Apache-2.0
"""Hosts in numbers and A-labels: IPv4, IPv6 (WHATWG URL, RFC 5952) and Punycode (RFC 3492).

Written here because a worker may import nothing once it is confined, and `idna` alone costs 26 ms at start.
"""

import re

_DECIMAL_QUAD = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_HEX_GROUP = re.compile(r"[0-9a-fA-F]{1,4}")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_BASE, _T_MIN, _T_MAX, _SKEW, _DAMP, _BIAS, _FIRST = 36, 1, 26, 38, 700, 72, 128
_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MAX_LABEL = 256


def canonical_ipv4(host: str) -> bool:
    """Tell whether `host` is four decimal numbers of 0 to 255 without leading zeros."""
    return _DECIMAL_QUAD.fullmatch(host) is not None and all(int(part) < 256 for part in host.split("."))


def ends_in_number(host: str) -> bool:
    """Tell whether WHATWG takes `host` for an IPv4 address: its last label is a number."""
    last = host.removesuffix(".").rpartition(".")[2]
    return _NUMBER.fullmatch(last) is not None


def whatwg_ipv4(host: str) -> str | None:
    """Read an IPv4 address in any spelling WHATWG knows (`0x7f.1`, `2130706433`) and write it as four
    numbers.
    """
    parts = host.removesuffix(".").split(".")
    if len(parts) > 4:
        return None
    numbers: list[int] = []
    for part in parts:
        number = _ipv4_number(part)
        if number is None:
            return None
        numbers.append(number)
    if any(number > 255 for number in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        return None
    value = numbers[-1]
    for place, number in enumerate(numbers[:-1]):
        value += number << (8 * (3 - place))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _ipv4_number(part: str) -> int | None:
    if not part or len(part) > 64:
        return None
    text, base = part, 10
    if text[:2] in {"0x", "0X"}:
        text, base = text[2:], 16
    elif len(text) > 1 and text[0] == "0":
        text, base = text[1:], 8
    if not text:
        return 0
    digits = {8: "01234567", 10: "0123456789", 16: "0123456789abcdefABCDEF"}[base]
    return int(text, base) if all(char in digits for char in text) else None


def ipv6(text: str) -> str | None:
    """Read an IPv6 address without brackets and write it compressed, lower-case (RFC 5952, mapped ones in
    hex).

    Zone ids are not read: Node refuses them.
    """
    if len(text) > 45:
        return None
    head, gap, tail = text.partition("::")
    left = _groups(head, last=not gap) if head else []
    right = _groups(tail, last=True) if tail else []
    if left is None or right is None:
        return None
    if gap:
        if len(left) + len(right) > 7:
            return None
        groups = left + [0] * (8 - len(left) - len(right)) + right
    elif len(left) == 8:
        groups = left
    else:
        return None
    return _compress(groups)


def _groups(text: str, *, last: bool) -> list[int] | None:
    out: list[int] = []
    pieces = text.split(":")
    if last and "." in pieces[-1]:
        quad = pieces.pop()
        if not canonical_ipv4(quad):
            return None
        a, b, c, d = map(int, quad.split("."))
        tail = [a << 8 | b, c << 8 | d]
    else:
        tail = []
    for piece in pieces:
        if _HEX_GROUP.fullmatch(piece) is None:
            return None
        out.append(int(piece, 16))
    return out + tail


def _compress(groups: list[int]) -> str:
    best_start, best_length, start = -1, 1, -1
    for place in range(9):
        if place < 8 and groups[place] == 0:
            if start < 0:
                start = place
        elif start >= 0:
            if place - start > best_length:
                best_start, best_length = start, place - start
            start = -1
    if best_start < 0:
        return ":".join(f"{group:x}" for group in groups)
    head = ":".join(f"{group:x}" for group in groups[:best_start])
    tail = ":".join(f"{group:x}" for group in groups[best_start + best_length :])
    return f"{head}::{tail}"


def _adapt(delta: int, points: int, *, first: bool) -> int:
    delta = delta // _DAMP if first else delta // 2
    delta += delta // points
    k = 0
    while delta > (_BASE - _T_MIN) * _T_MAX // 2:
        delta //= _BASE - _T_MIN
        k += _BASE
    return k + (_BASE - _T_MIN + 1) * delta // (delta + _SKEW)


def punycode_encode(label: str) -> str | None:
    """Encode a label by RFC 3492 (without `xn--`); None when it is too long for a host name."""
    if len(label) > _MAX_LABEL:
        return None
    basic = [char for char in label if ord(char) < _FIRST]
    out = [*basic, "-"] if basic else []
    n, delta, bias, done = _FIRST, 0, _BIAS, len(basic)
    while done < len(label):
        smallest = min(ord(char) for char in label if ord(char) >= n)
        delta += (smallest - n) * (done + 1)
        n = smallest
        for char in label:
            if ord(char) < n:
                delta += 1
            elif ord(char) == n:
                q, k = delta, _BASE
                while q >= (t := min(max(k - bias, _T_MIN), _T_MAX)):
                    out.append(_DIGITS[t + (q - t) % (_BASE - t)])
                    q = (q - t) // (_BASE - t)
                    k += _BASE
                out.append(_DIGITS[q])
                bias = _adapt(delta, done + 1, first=done == len(basic))
                delta = 0
                done += 1
        delta += 1
        n += 1
    return "".join(out)


def punycode_decode(text: str) -> str | None:
    """Decode lower-case Punycode (without `xn--`); None when it is malformed."""
    if len(text) > _MAX_LABEL:
        return None
    basic, dash, extended = text.rpartition("-")
    out = list(basic) if dash else []
    n, i, bias, at = _FIRST, 0, _BIAS, 0
    while at < len(extended):
        before, weight, k = i, 1, _BASE
        while True:
            if at >= len(extended) or (digit := _DIGITS.find(extended[at])) < 0:
                return None
            at += 1
            i += digit * weight
            t = min(max(k - bias, _T_MIN), _T_MAX)
            if digit < t:
                break
            weight *= _BASE - t
            k += _BASE
        bias = _adapt(i - before, len(out) + 1, first=before == 0)
        n += i // (len(out) + 1)
        i %= len(out) + 1
        if n > 0x10FFFF:
            return None
        out.insert(i, chr(n))
        i += 1
    return "".join(out)
