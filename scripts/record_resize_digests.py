#!/usr/bin/python3
"""Records what OpenCV's resize (INTER_LINEAR) makes of images of many sizes, in
tests/data/resize/digests.txt.

Needs Debian's python3-opencv (4.6). The images are made of a generator that
tests/unit/test_resize.c has, too.
"""

import os
import random
import zlib

import cv2
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "tests", "data", "resize", "digests.txt")


def image(channels, height, width):
    """Noise: the high bytes of a linear congruential generator."""
    state = height * 65536 + width
    values = bytearray(channels * height * width)
    for i in range(len(values)):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        values[i] = state >> 24
    return np.frombuffer(bytes(values), np.uint8).reshape(
        height, width, channels)


def sizes():
    """(channels, height, width, new height, new width)."""
    for side in (1, 2, 3, 5, 8, 31, 100):
        for to in (1, 2, 3, 5, 8, 31, 100):
            yield 3, side, 17, to, 17
            yield 1, 17, side, 17, to
    for channels in (1, 3):
        yield channels, 1, 1, 1, 1
        yield channels, 1, 1, 7, 9
        yield channels, 23, 45, 1, 1
        yield channels, 64, 48, 32, 24
        yield channels, 64, 48, 32, 48
        yield channels, 64, 48, 64, 24
        yield channels, 2, 2, 1, 1
        yield channels, 6, 90, 3, 45
        yield channels, 375, 500, 256, 256
        yield channels, 32, 32, 224, 224
        yield channels, 1, 1000, 3, 333
        yield channels, 1000, 1, 333, 3
    chance = random.Random(4)
    for _ in range(100):
        yield (chance.choice((1, 3)),
               *(chance.randrange(1, 90) for _ in range(4)))


def main():
    with open(OUT, "w") as out:
        print(f"# OpenCV {cv2.__version__}, by record_resize_digests.py: "
              "channels, height, width, new height and width, CRC-32 of the "
              "pixels", file=out)
        for size in sizes():
            channels, height, width, to_height, to_width = size
            made = cv2.resize(image(channels, height, width),
                              (to_width, to_height),
                              interpolation=cv2.INTER_LINEAR)
            made = made.reshape(to_height, to_width, channels)
            print(*size, f"{zlib.crc32(made.tobytes()):08x}", file=out)


if __name__ == "__main__":
    main()
