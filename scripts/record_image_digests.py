#!/usr/bin/python3
"""Makes the test images of tests/data/images and records what OpenCV makes of
them, and of the real ones in ../shared/data, in digests.txt there.

Needs Debian's python3-opencv (4.6), python3-lmdb, a C compiler and
libjpeg-turbo's headers. The images are the same bytes on every run.
"""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

import cv2
import lmdb
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGES = os.path.join(ROOT, "tests", "data", "images")
SHARED = os.path.join(ROOT, "..", "shared", "data")
FLAGS = {"native": -1, "color": 1, "gray": 0}

# OpenCV makes up the rows after an early end; leat refuses the image.
EARLY_ENDS = {"corrupt34_2.jpg", "corrupt34_3.jpg", "corrupt34_4.jpg"}


def tiff(entries, order="II", mark=42):
    """A TIFF block of one directory; each entry is (tag, type, n, value)."""
    end = "<" if order[0] == "I" and order[1] == "I" else ">"
    block = order.encode() + struct.pack(end + "HIH", mark, 8, len(entries))
    for tag, kind, count, value in entries:
        block += struct.pack(end + "HHI", tag, kind, count)
        block += struct.pack(end + ("HH" if kind == 3 else "I"),
                             *([value, 0] if kind == 3 else [value]))
    return block + bytes(4)


def orientation(value, order="II", **rest):
    return tiff([(0x112, 3, 1, value)], order, **rest)


EXIF = b"Exif\0\0"
TEXT_OUTSIDE = (0x10F, 2, 100, 5000)
TEXT_INSIDE = (0x10F, 2, 4, 0)
RESOLUTION_OUTSIDE = (0x11A, 5, 1, 4000)

# Blocks that OpenCV reads in ways worth keeping.
APP1 = {
    "bad-text-first": [EXIF + tiff([TEXT_OUTSIDE, (0x112, 3, 1, 6)])],
    "bad-text-last": [EXIF + tiff([(0x112, 3, 1, 6), TEXT_OUTSIDE])],
    "bad-resolution-first": [
        EXIF + tiff([RESOLUTION_OUTSIDE, (0x112, 3, 1, 6)])],
    "short-text-first": [EXIF + tiff([TEXT_INSIDE, (0x112, 3, 1, 6)])],
    "two-orientations": [
        EXIF + tiff([(0x112, 3, 1, 3), (0x112, 3, 1, 6)])],
    "orientation-0": [EXIF + orientation(0)],
    "orientation-9": [EXIF + orientation(9)],
    "mixed-order": [EXIF + orientation(6, "IM")],
    "bad-mark": [EXIF + orientation(6, mark=43)],
    "cut": [EXIF + orientation(6)[:18]],
    "cut-directory": [EXIF + tiff([(0x112, 3, 1, 6)])[:9]],
    "other-head": [b"xxxxxx" + orientation(6)],
    "second-app1": [b"http://ns.adobe.com/xap/1.0/\0<x/>",
                    EXIF + orientation(6)],
    "empty-app1-first": [b"", EXIF + orientation(6)],
    "head-only": [EXIF],
}


def jpegs():
    """(name, write_jpeg's arguments, APP1 segments) of each JPEG."""
    ycc = ["ycc", "2x2", "-"]
    yield "baseline-420", ["17", "13", *ycc], []
    yield "1x1", ["1", "1", *ycc], []
    yield "1x9", ["1", "9", *ycc], []
    yield "40x3", ["40", "3", *ycc], []
    yield "baseline-422", ["17", "13", "ycc", "2x1", "-"], []
    yield "baseline-440", ["17", "13", "ycc", "1x2", "-"], []
    yield "baseline-411", ["33", "13", "ycc", "4x1", "-"], []
    yield "baseline-444", ["17", "13", "ycc", "1x1", "-"], []
    yield "progressive-420", ["33", "25", "ycc", "2x2", "p"], []
    yield "progressive-444", ["17", "13", "ycc", "1x1", "p"], []
    yield "progressive-gray", ["17", "13", "gray", "1x1", "p"], []
    yield "arithmetic-420", ["33", "25", "ycc", "2x2", "a"], []
    yield "arithmetic-progressive", ["33", "25", "ycc", "2x2", "ap"], []
    yield "restart-420", ["33", "40", "ycc", "2x2", "r"], []
    yield "restart-progressive", ["33", "40", "ycc", "2x2", "rp"], []
    yield "scans-420", ["33", "25", "ycc", "2x2", "s"], []
    yield "no-huffman-tables", ["33", "25", "ycc", "2x2", "n"], []
    yield "gray", ["17", "13", "gray", "1x1", "-"], []
    yield "gray-2x2", ["17", "13", "gray", "2x2", "-"], []
    yield "rgb", ["17", "13", "rgb", "1x1", "-"], []
    yield "cmyk", ["17", "13", "cmyk", "1x1", "-"], []
    yield "ycck-444", ["17", "13", "ycck", "1x1", "-"], []
    yield "ycck-420", ["17", "13", "ycck", "2x2", "-"], []
    yield "ycck-progressive", ["17", "13", "ycck", "2x2", "p"], []
    for i in range(1, 9):
        order = "MM" if i % 2 else "II"
        app1 = [EXIF + orientation(i, order)]
        yield f"exif-{i}", ["17", "13", *ycc], app1
    for name, app1 in APP1.items():
        yield f"exif-{name}", ["9", "5", "gray", "1x1", "-"], app1
    yield "exif-6-gray", ["9", "5", "gray", "1x1", "-"], APP1[
        "bad-text-last"]
    yield "exif-7-cmyk", ["9", "5", "cmyk", "1x1", "-"], [
        EXIF + orientation(7)]
    yield "exif-8-progressive", ["9", "5", "ycc", "2x2", "p"], [
        EXIF + orientation(8)]


def make_jpegs(write_jpeg, folder):
    for name, arguments, app1 in jpegs():
        paths = []
        for i, segment in enumerate(app1):
            paths.append(os.path.join(folder, f"app1-{i}"))
            with open(paths[-1], "wb") as file:
                file.write(segment)
        yield name + ".jpg", subprocess.run(
            [write_jpeg, *arguments, *paths], check=True,
            stdout=subprocess.PIPE).stdout
    yield from damaged_jpegs(write_jpeg)


def damaged_jpegs(write_jpeg):
    whole = subprocess.run([write_jpeg, "33", "40", "ycc", "2x2", "r"],
                           check=True, stdout=subprocess.PIPE).stdout
    second = whole.index(b"\xff\xd1")
    yield "junk-before-restart.jpg", (
        whole[:second] + b"\x12\x34\x56" + whole[second:])
    yield "short-segment.jpg", whole[:second - 20] + whole[second:]
    yield "short-scan.jpg", whole[:-22] + whole[-2:]
    yield "junk-before-end.jpg", whole[:-2] + b"\x12\x34\x56\xff\xd9"
    yield "junk-after-end.jpg", whole + b"\x12\x34\x56" * 5
    yield "junk-after-start.jpg", whole[:2] + b"\x12\x34" + whole[2:]
    app1 = EXIF + orientation(6)
    yield "exif-of-length-0-first.jpg", (
        whole[:2] + b"\xff\xe1\0\0\xff\xe1" +
        struct.pack(">H", len(app1) + 2) + app1 + whole[2:])
    tables = whole.index(b"\xff\xdb")
    quantization = 2 + struct.unpack(">H", whole[tables + 2:tables + 4])[0]
    yield "no-quantization.jpg", (
        whole[:tables] + whole[tables + quantization:])


def chunk(name, data, crc=0):
    body = name.encode() + data
    return (struct.pack(">I", len(data)) + body +
            struct.pack(">I", zlib.crc32(body) ^ crc))


def pack(row, depth):
    """A row of samples as PNG lays them: big-endian, from the high bits."""
    if depth == 16:
        return b"".join(struct.pack(">H", v) for v in row)
    bits = "".join(format(v, f"0{depth}b") for v in row)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
         (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def sample(x, y, component, depth, kind):
    if kind == 3:
        return (x + 2 * y) % min(1 << depth, 11)
    most = (1 << depth) - 1
    value = (x * 37 + y * 61 + component * 89) * (x + 3) % 1021
    return value * most // 1020


def filtered(rows, step):
    """Each row with another of PNG's filters: none, sub, up, average."""
    out, above = b"", None
    for i, row in enumerate(rows):
        above = above or bytes(len(row))
        left = bytes(step) + row
        kind = i % 4
        guess = [bytes(len(row)), left, above,
                 [(a + b) // 2 for a, b in zip(left, above)]][kind]
        out += bytes([kind]) + bytes(
            (v - g) & 255 for v, g in zip(row, guess))
        above = row
    return out


def png(kind, depth, before=b"", after=b"", interlaced=False, width=17,
        height=13):
    step = max(1, CHANNELS[kind] * depth // 8)
    data = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        if x0 >= width:
            continue
        rows = [pack([sample(x, y, c, depth, kind)
                      for x in range(x0, width, dx)
                      for c in range(CHANNELS[kind])], depth)
                for y in range(y0, height, dy)]
        data += filtered(rows, step)
    if kind == 3:
        before = chunk("PLTE", palette(min(1 << depth, 11))) + before
    packed = zlib.compress(data, 9)
    cut = len(packed) // 2
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0,
                         interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + before +
            chunk("IDAT", packed[:cut]) + chunk("IDAT", packed[cut:]) +
            after + chunk("IEND", b""))


def palette(entries):
    return b"".join(bytes([i * 23 % 256, 255 - i * 17, i * 71 % 256])
                    for i in range(entries))


def gamma(value):
    return chunk("gAMA", struct.pack(">I", value))


def pngs():
    for depth in 1, 2, 4, 8, 16:
        yield f"gray-{depth}", png(0, depth)
        yield f"gray-{depth}-interlaced", png(0, depth, interlaced=True)
        key = struct.pack(">H", (1 << depth) // 3)
        yield f"gray-{depth}-key", png(0, depth, chunk("tRNS", key))
    for depth in 1, 2, 4, 8:
        yield f"palette-{depth}", png(3, depth)
        yield f"palette-{depth}-alpha", png(
            3, depth, chunk("tRNS", bytes([0, 128])))
    yield "palette-4-interlaced", png(3, 4, interlaced=True)
    yield "palette-8-alpha-empty", png(3, 8, chunk("tRNS", b""))
    yield "palette-8-alpha-bad-sum", png(3, 8, chunk("tRNS", b"\0", crc=1))
    yield "palette-8-background", png(
        3, 8, chunk("bKGD", b"\3") + chunk("hIST", bytes(22)))
    for depth in 8, 16:
        yield f"gray-alpha-{depth}", png(4, depth)
        yield f"rgb-{depth}", png(2, depth)
        yield f"rgb-{depth}-key", png(
            2, depth, chunk("tRNS", struct.pack(">HHH", 2, 100, 60)))
        yield f"rgba-{depth}", png(6, depth)
        yield f"rgba-{depth}-interlaced", png(6, depth, interlaced=True)
        for name, before in (
                ("gamma", gamma(45455)), ("gamma-1", gamma(100000)),
                ("srgb", chunk("sRGB", b"\0")),
                ("gamma-significant-bits", gamma(60000) + chunk(
                    "sBIT", bytes([5, 6, 5])))):
            yield f"rgb-{depth}-{name}", png(2, depth, before)
    yield "palette-8-gamma", png(3, 8, gamma(45455))
    yield "gray-alpha-8-gamma", png(4, 8, gamma(45455))
    yield "rgb-8-chromaticities", png(2, 8, chunk("cHRM", struct.pack(
        ">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000)))
    yield "rgb-1x1", png(2, 8, width=1, height=1)
    yield "rgb-1x1-interlaced", png(2, 8, width=1, height=1, interlaced=True)
    yield "rgb-3x5-interlaced", png(2, 8, width=3, height=5, interlaced=True)
    yield from pngs_with_more_chunks()


def pngs_with_more_chunks():
    text = chunk("tEXt", b"Comment\0" + b"a" * 60)
    yield "text", png(2, 8, text, text)
    yield "text-bad-sum", png(2, 8, chunk("tEXt", b"A\0b", crc=1))
    yield "text-compressed-badly", png(2, 8, chunk("zTXt", b"A\0\0junk"))
    yield "profile-bad", png(2, 8, chunk("iCCP", b"A\0\0junk"))
    yield "unknown", png(2, 8, chunk("leAt", b"hello"))
    yield "unknown-critical", png(2, 8, chunk("LEAT", b"hello"))
    yield "unknown-critical-late", png(2, 8, b"", chunk("LEAT", b"hello"))
    whole = png(2, 8)
    data = whole.index(b"IDAT")
    yield "data-bad-sum", whole[:data + 8] + bytes([
        whole[data + 8] ^ 1]) + whole[data + 9:]
    yield "header-bad-sum", whole[:29] + bytes([whole[29] ^ 1]) + whole[30:]
    yield "end-missing", whole[:-12]
    yield "end-twice", whole + whole[-12:]
    yield "text-before-header", whole[:8] + text + whole[8:]
    yield "unknown-before-header", (
        whole[:8] + chunk("leAt", b"hello") + whole[8:])
    exif = chunk("eXIf", orientation(6))
    yield "exif-after-end", whole + exif
    yield "exif-before-data", png(2, 8, exif)
    yield "exif-after-data", png(2, 8, b"", exif)
    yield "exif-both", png(2, 8, chunk("eXIf", orientation(3, "MM")), exif)
    yield "exif-twice", png(2, 8, chunk("eXIf", orientation(3, "MM")) + exif)
    yield "exif-bad-sum", png(2, 8, chunk("eXIf", orientation(3), crc=1),
                              exif)
    yield "exif-bad-order", png(2, 8, chunk("eXIf", orientation(3, "IM")) +
                                exif)
    yield "exif-short", png(2, 8, chunk("eXIf", b"I") + exif)
    yield "exif-gray", png(0, 8, exif)
    yield "exif-rgba", png(6, 8, exif)


def make_foreign():
    """Files of other formats, which leat names and refuses."""
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    for extension in "bmp", "tiff", "webp":
        yield "foreign." + extension, bytes(
            cv2.imencode("." + extension, pixels)[1])
    yield "foreign.gif", (b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0"
                          b"\1\0\1\0\0\2\2D\1\0;")


def shared_images():
    folder = os.path.join(SHARED, "images")
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            with open(os.path.join(path, name), "rb") as file:
                yield "shared:" + os.path.relpath(
                    os.path.join(path, name), SHARED), file.read()


def shared_records():
    """The encoded image in each record of the JPEG database."""
    path = os.path.join(SHARED, "lmdb", "imagenet5_jpeg_lmdb")
    with lmdb.open(path, readonly=True, lock=False) as database:
        with database.begin() as transaction:
            for key, value in transaction.cursor():
                start = value.index(b"\xff\xd8\xff")
                yield "record:" + key.decode(), value[start:]


def verdict(name, data, flag):
    """The line's last columns: a shape and a CRC-32, or that it's refused."""
    refused = "refused"
    if os.path.basename(name) in EARLY_ENDS or name.startswith("foreign."):
        return refused
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), FLAGS[flag])
    if pixels is None or pixels.dtype != np.uint8:
        return refused
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    height, width, channels = pixels.shape
    return f"{channels}x{height}x{width}\t{zlib.crc32(pixels.tobytes()):08x}"


def lines(images):
    for name, data in images:
        for flag in FLAGS:
            yield f"{name}\t{flag}\t{verdict(name, data, flag)}\n"


def make_images():
    with tempfile.TemporaryDirectory() as folder:
        write_jpeg = os.path.join(folder, "write_jpeg")
        source = os.path.join(ROOT, "scripts", "write_jpeg.c")
        subprocess.run(["cc", "-o", write_jpeg, source, "-ljpeg"], check=True)
        yield from make_jpegs(write_jpeg, folder)
    for name, data in pngs():
        yield name + ".png", data
    yield from make_foreign()


def main():
    os.makedirs(IMAGES, exist_ok=True)
    images = list(make_images())
    for name, data in images:
        with open(os.path.join(IMAGES, name), "wb") as file:
            file.write(data)
    with open(os.path.join(IMAGES, "digests.txt"), "w") as file:
        file.write(f"# OpenCV {cv2.__version__}, by record_image_digests.py: "
                   "name, flag, CxHxW, CRC-32 of the pixels\n")
        file.writelines(lines(images))
        for source in shared_images, shared_records:
            if os.path.isdir(SHARED):
                file.writelines(lines(source()))
    print(f"{len(images)} images, "
          f"{sum(len(data) for _, data in images)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
