#!/usr/bin/python3
"""Records what Caffe's convert_imageset makes of the images of
tests/data/images, in tests/data/imageset/digests.txt.

Does with OpenCV what it does: imread, resize, imencode; writes Datums as
protobuf does. Where leat differs on purpose this does as leat: images that are
wanted gray are not kept in colour, and --encode-type jpg keeps the bytes of
a.jpg. Each line is the SHA-256 of what mdb_dump prints of the records, then the
options. Needs Debian's python3-opencv (4.6).
"""

import hashlib
import os

import cv2

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = os.path.join(ROOT, "tests", "data", "images")
OUT = os.path.join(ROOT, "tests", "data", "imageset", "digests.txt")

# (options, size, gray, encoded, encode type); no PNGs are made, whose bytes
# depend on the version of zlib.
CASES = [
    ("", None, False, False, None),
    ("--gray", None, True, False, None),
    ("--resize 32,32", (32, 32), False, False, None),
    ("--resize 57,91 --gray", (57, 91), True, False, None),
    ("--resize 300,2", (300, 2), False, False, None),
    ("--encoded", None, False, True, None),
    ("--encode-type jpg", None, False, False, "jpg"),
    ("--encode-type jpg --gray", None, True, False, "jpg"),
    ("--encode-type jpg --resize 20,30", (20, 30), False, False, "jpg"),
]

# Which way up it is depends on how OpenCV was built.
LEFT_OUT = {"exif-bad-order.png"}


def names():
    return sorted(name for name in os.listdir(IMAGES)
                  if name.endswith((".jpg", ".png")) and name not in LEFT_OUT)


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def datum(data, label, shape=None):
    """An encoded image, or planes of a shape, which say encoded: false."""
    out = b""
    if shape:
        for number, side in enumerate(shape, 1):
            out += bytes([number << 3]) + varint(side)
    out += b"\x22" + varint(len(data)) + data + b"\x28" + varint(label)
    return out + b"\x38" + (b"\0" if shape else b"\1")


def keeps_bytes(path, size, gray, encode_type):
    extension = path.rsplit(".", 1)[1]
    if size or (encode_type or extension) != extension:
        return False
    native = cv2.imread(path, cv2.IMREAD_UNCHANGED)
    return not gray or native.ndim == 2 and native.dtype == "uint8"


def record(path, label, size, gray, encoded, encode_type):
    image = cv2.imread(path, 0 if gray else 1)
    if image is None:
        return None
    if size:
        image = cv2.resize(image, (size[1], size[0]))
    if not encoded and not encode_type:
        planes = image.reshape(*image.shape[:2], -1).transpose(2, 0, 1)
        return datum(planes.tobytes(), label, planes.shape)
    if keeps_bytes(path, size, gray, encode_type):
        with open(path, "rb") as file:
            return datum(file.read(), label)
    return datum(cv2.imencode("." + encode_type, image)[1].tobytes(), label)


def main():
    with open(OUT, "w") as out:
        print(f"# OpenCV {cv2.__version__}, by record_imageset_digests.py",
              file=out)
        for options, *wanted in CASES:
            digest = hashlib.sha256()
            for line, name in enumerate(names()):
                value = record(os.path.join(IMAGES, name), line - 3, *wanted)
                if value:
                    key = b"%08d_%s" % (line, name.encode())
                    digest.update(f" {key.hex()}\n {value.hex()}\n".encode())
            print(digest.hexdigest(), options, file=out)


if __name__ == "__main__":
    main()
