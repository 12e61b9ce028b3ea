/*
 * data_layer_option_table.h: every option of a data layer, once.
 *
 * These lines give leat_data_layer_options its defaults and its check,
 * leat_data_layer_options_set its names, leat_param its fields, and the tool
 * its options with their --help. test_data_layer_option_table compares them
 * with the struct in leat/data_layer_options.h, docs/prototxt.md and the man
 * page. To add an option, add a member to the struct and a line here in the
 * same position, then run the test, which names the documents that lack it.
 *
 * X(member, type, field, ...): the type is one of leat_option_type; `field` is
 * protobuf's type of the field in leat_param, WORD for words, or NONE where a
 * net file does not have it there; the rest are members of leat_option.
 */
#ifndef LEAT_LAYER_OPTIONS_DATA_LAYER_OPTION_TABLE_H
#define LEAT_LAYER_OPTIONS_DATA_LAYER_OPTION_TABLE_H

#include <leat/data_layer.h>
#include <leat/option.h>
#include <limits.h>

/* Samples in a batch of one rank. */
#define LEAT__BATCH_SIZE_MAX (INT_MAX / 2)

/* Ranks; a resume token has 16 bits for their number. */
#define LEAT__WORLD_MAX UINT16_MAX

/* clang-format off */
#define LEAT__DATA_LAYER_OPTIONS(X)                                            \
    X(name, TEXT, NONE, .initial = "data", .help = "the layer's")              \
    X(tops, OTHER, NONE, .help = "names of the tops")                          \
    X(device, TEXT, NONE, .initial = "cpu", .help = "where batches end")       \
    X(phase, WORD, NONE, .words = "TRAIN|TEST", .initial = "TRAIN",            \
      .argument = "phase", .help = "the phase; without --net TRAIN")            \
    X(level, INT, NONE, .least = INT_MIN, .most = INT_MAX, .initial = "0",     \
      .argument = "level", .value = "N",                                       \
      .help = "the level of the net's state (0)")                              \
    X(layer, TEXT, NONE, .argument = "layer", .value = "NAME",                 \
      .help = "which of several data layers")                                  \
    X(stages, OTHER, NONE, .help = "stages of the net's state")                \
    X(source, TEXT, NONE, .argument = "source", .value = "PATH",               \
      .help = "with --net: an LMDB instead of the file's source")              \
    X(mean_file, TEXT, NONE, .help = "a mean instead of the file's")           \
    X(batch_size, INT64, NONE, .least = 1, .most = LEAT__BATCH_SIZE_MAX,       \
      .unit = "samples", .argument = "batch", .value = "N",                    \
      .help = "samples in a batch")                                            \
    X(global_batch_size, INT64, INT64, .least = 1,                             \
      .most = (int64_t)LEAT__BATCH_SIZE_MAX * LEAT__WORLD_MAX,                 \
      .unit = "samples", .argument = "global-batch", .value = "N",             \
      .help = "samples of all ranks, instead of --batch")                      \
    X(rank, INT, UINT32, .most = LEAT__WORLD_MAX - 1, .initial = "0",          \
      .argument = "rank", .value = "R", .help = "this rank, from 0")           \
    X(world_size, INT, UINT32, .most = LEAT__WORLD_MAX, .initial = "1",        \
      .unit = "ranks", .argument = "world-size", .value = "W",                 \
      .help = "how many ranks there are (1)")                                  \
    X(shard_test, BOOL, BOOL, .initial = "false", .argument = "shard-test",    \
      .help = "divide TEST between the ranks, too")                            \
    X(epoch_end, WORD, WORD, .words = "WRAP|DROP|PARTIAL|PAD",                 \
      .initial = "WRAP", .argument = "epoch-end",                              \
      .help = "samples that fill no batch at an epoch's end (WRAP)")           \
    X(transform_on, WORD, WORD, .words = "CPU|DEVICE", .initial = "CPU",       \
      .argument = "transform-on",                                              \
      .help = "where pixels become the top's (CPU)")                           \
    X(top_type, DTYPE, WORD, .words = "FLOAT32|FLOAT64|FLOAT16|BFLOAT16|UINT8",\
      .initial = "FLOAT32", .argument = "top-type", .value = "TYPE",           \
      .help = "FLOAT32, FLOAT64, FLOAT16, BFLOAT16 or UINT8")                  \
    X(label_type, DTYPE, WORD, .words = "FLOAT32|FLOAT64|INT32|INT64|UINT8",   \
      .argument = "label-type", .value = "TYPE",                               \
      .help = "FLOAT32, FLOAT64, INT32, INT64 or UINT8")                       \
    X(layout, WORD, WORD, .words = "NCHW|NHWC", .initial = "NCHW",             \
      .argument = "layout", .help = "order of an image's axes (NCHW)")         \
    X(top_mode, WORD, WORD, .words = "LEND|COPY", .initial = "LEND",           \
      .argument = "top-mode",                                                  \
      .help = "tops share a batch's memory or own theirs (LEND)")              \
    X(transform, OTHER, NONE, .help = "of field data")                         \
    X(top, OTHER, NONE, .help = "which fields become which tops")              \
    X(prefetch, INT, WORD, .most = 1 << 20, .words = "AUTO", .initial = "4",   \
      .unit = "batches", .argument = "prefetch", .value = "N",                 \
      .help = "batches made ahead (4); AUTO: as it takes")                     \
    X(workers, INT, UINT32, .most = 1024, .initial = "0", .unit = "threads",   \
      .argument = "workers", .value = "N",                                     \
      .help = "threads; 0: as many as the machine lends")                      \
    X(reader_thread, WORD, WORD, .words = "AUTO|ON|OFF", .initial = "AUTO",    \
      .argument = "reader-thread", .help = "a thread that only reads (AUTO)")  \
    X(caller_helps, WORD, WORD, .words = "AUTO|OFF", .initial = "AUTO",        \
      .argument = "caller-helps",                                              \
      .help = "whether a forward that would wait works (AUTO)")                \
    X(max_memory, BYTES, UINT64, .most = INT64_MAX, .initial = "0",            \
      .unit = "bytes", .argument = "max-memory", .value = "N",                 \
      .help = "bytes that batches and readers may take; 0: no limit")          \
    X(max_image_bytes, BYTES, UINT64, .most = INT64_MAX, .initial = "0",       \
      .unit = "bytes", .argument = "max-image-bytes", .value = "N",            \
      .help = "bytes that decoding an image may take; 0: 256 MiB or less")     \
    X(must_pin, BOOL, NONE, .initial = "false", .argument = "must-pin",        \
      .help = "an error where batches cannot be pinned")                       \
    X(host_allocator, OTHER, NONE, .help = "of batches in host memory")        \
    X(pinned_allocator, OTHER, NONE, .help = "of the host side of batches")    \
    X(on_error, WORD, WORD, .words = "FAIL|ZERO|REPLACE", .initial = "FAIL",   \
      .renamed = "SKIP|REPLACE", .argument = "on-error",                       \
      .help = "what becomes of a bad record (FAIL)")                           \
    X(bad_record_file, TEXT, STRING, .argument = "bad-record-file",            \
      .value = "FILE", .help = "append a line for each bad record")            \
    X(max_errors, INT64, INT64, .least = -1, .most = INT64_MAX,                \
      .unit = "records (-1: no limit)", .initial = "-1",                       \
      .given = offsetof(leat_data_layer_options, has_max_errors),              \
      .argument = "max-errors", .value = "N",                                  \
      .help = "bad records at most; -1: no limit")                             \
    X(rng, WORD, WORD, .words = "LEAT|CAFFE", .initial = "LEAT",               \
      .argument = "rng", .help = "where random choices come from (LEAT)")      \
    X(random_seed, INT64, INT64, .least = INT64_MIN, .most = INT64_MAX,        \
      .initial = "-1",                                                         \
      .given = offsetof(leat_data_layer_options, has_random_seed),             \
      .argument = "seed", .value = "S",                                        \
      .help = "of random choices; -1 or less: drawn")
/* clang-format on */

#endif
