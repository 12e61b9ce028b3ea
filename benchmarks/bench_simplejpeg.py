"""What decoding costs with simplejpeg, which carries a libjpeg-turbo of its own:

    bench_simplejpeg.py version
    bench_simplejpeg.py ROUNDS FILE.jpg...    microseconds of processor an image
"""

import statistics
import sys
import time

import simplejpeg


def measure(files):
    start = time.process_time()
    for data in files:
        simplejpeg.decode_jpeg(data, "BGR", fastdct=False, fastupsample=False)
    return (time.process_time() - start) * 1e6 / len(files)


def main():
    if sys.argv[1] == "version":
        print(simplejpeg.__version__)
        return
    files = []
    for path in sys.argv[2:]:
        with open(path, "rb") as file:
            files.append(file.read())
    measure(files)
    times = [measure(files) for _ in range(int(sys.argv[1]))]
    print(f"{statistics.median(times):.2f}")


main()
