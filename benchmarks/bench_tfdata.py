"""Measures tf.data on the chains of scripts/bench_tfdata.sh, and makes their files.

    bench_tfdata.py make FOLDER      sixteen TFRecord files of examples
    bench_tfdata.py measure FOLDER CHAIN SECONDS    prints samples a second
    bench_tfdata.py version

Each example has `image`, 3072 bytes, and `label`, an int64. The bytes are decoded to
a uint8 vector. Of the two usual ways to write a chain, parsing before and after
batching, the faster one counts; parallelism and prefetching are AUTOTUNE's.
"""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import tensorflow as tf  # noqa: E402

FILES, EXAMPLES, PIXELS, BATCH = 16, 4000, 3072, 64
FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def make(folder):
    for number in range(FILES):
        path = os.path.join(folder, f"train-{number:02d}.tfr")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(EXAMPLES):
                label = number * EXAMPLES + i
                pixels = bytes((label * 31 + k * 7) % 256 for k in range(64)) * 48
                feature = {
                    "image": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[pixels])),
                    "label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[label])),
                }
                example = tf.train.Example(
                    features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())


def parse_one(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return tf.io.decode_raw(example["image"], tf.uint8), example["label"]


def parse_batch(records):
    example = tf.io.parse_example(records, FEATURES)
    return tf.io.decode_raw(example["image"], tf.uint8), example["label"]


def records(folder, chain):
    """The records of a chain before parsing, and how a pair of them is parsed."""
    files = sorted(tf.io.gfile.glob(os.path.join(folder, "*.tfr")))
    if chain == "shuffle":
        return tf.data.TFRecordDataset(files).shuffle(10000, seed=1)
    if chain == "zip":
        return tf.data.Dataset.zip((tf.data.TFRecordDataset(files[:8]),
                                    tf.data.TFRecordDataset(files[8:])))
    return tf.data.Dataset.from_tensor_slices(files).interleave(
        tf.data.TFRecordDataset, cycle_length=16, block_length=1,
        num_parallel_calls=tf.data.AUTOTUNE)


def pairs(parse):
    return lambda a, b: (parse(a), parse(b))


def variants(folder, chain):
    auto = tf.data.AUTOTUNE
    of_one, of_batch = parse_one, parse_batch
    if chain == "zip":
        of_one, of_batch = pairs(parse_one), pairs(parse_batch)
    data = records(folder, chain).repeat()
    yield data.map(of_one, num_parallel_calls=auto).batch(BATCH).prefetch(auto)
    yield data.batch(BATCH).map(of_batch, num_parallel_calls=auto).prefetch(auto)


def rate(data, seconds):
    iterator = iter(data)
    for _ in range(20):
        next(iterator)
    batches, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        next(iterator)
        batches += 1
    return batches * BATCH / (time.perf_counter() - begin)


def main():
    if sys.argv[1] == "version":
        print(tf.__version__)
    elif sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        folder, chain, seconds = sys.argv[2], sys.argv[3], float(sys.argv[4])
        print(max(rate(data, seconds) for data in variants(folder, chain)))


if __name__ == "__main__":
    main()
