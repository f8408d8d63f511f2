# SPDX-License-Identifier: Apache-2.0
"""Bytes as a source of decisions: the same bytes make the same input, so a found one can be kept as a file."""


class Choices:
    """Takes decisions from the front of a byte string; zeros when it is used up."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    @property
    def left(self):
        return max(len(self.data) - self.at, 0)

    def number(self, limit):
        """A number below `limit`, from as many bytes as it needs."""
        width = 1 if limit <= 256 else 2 if limit <= 65536 else 4
        piece = self.data[self.at : self.at + width]
        self.at += width
        return int.from_bytes(piece, "big") % limit if limit else 0

    def one(self, items):
        return items[self.number(len(items))]

    def chance(self, percent):
        return self.number(100) < percent

    def text(self, most=12):
        """Text of any code points, lone surrogates too."""
        size = self.number(most + 1)
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece.decode("utf-8", "surrogateescape")

    def rest(self):
        piece = self.data[self.at :]
        self.at = len(self.data)
        return piece
