/* leat/example.h: which features a serialized tf.train.Example has. */
#ifndef LEAT_EXAMPLE_H
#define LEAT_EXAMPLE_H

#include <leat/dtype.h>
#include <leat/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A feature of a tf.train.Example, or of a SequenceExample's context or steps
 * (proto/example.proto).
 */
typedef struct leat_example_feature {
    const char *name; /* a view of the message; not terminated */
    size_t name_size; /* bytes */
    leat_dtype dtype; /* LEAT_BYTES, LEAT_FLOAT32 or LEAT_INT64 */
    bool is_sequence; /* a FeatureList: one feature for each step */
    int64_t steps;    /* of those; 1 where it is none */
    int64_t fewest;   /* values of a step, which may differ */
    int64_t most;     /* the same as `fewest` where it is no sequence */
} leat_example_feature;

/**
 * Lists the features in a message of `size` bytes, in its order: the first `n`
 * of them into `out` (borrowed views of `message`), and their number, which may
 * be larger, into `*found`. What the pipeline's `example` and
 * `sequence_example` can read of the message is thus known beforehand.
 *
 * Features without a value are left out. One whose name comes again in the
 * message is listed again; the last one counts. A sequence whose steps are of
 * several types has that of the last. Errors: LEAT_EDATA with the byte offset
 * where the message is no protobuf of that form. Thread safety: any threads.
 */
LEAT_API int leat_example_features(leat_example_feature out[], int n,
                                   int64_t *found, const void *message,
                                   size_t size);

#ifdef __cplusplus
}
#endif

#endif
