/*
 * leat/groups.h: decorators that make groups of samples, and that divide them.
 * What leat/decorators.h says of all holds for these. */
#ifndef LEAT_GROUPS_H
#define LEAT_GROUPS_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Groups of samples
 * Thread safety: any thread.
 * @{
 */

/**
 * How the fields of several samples become those of one group. Zero is the
 * default of every field but `size`. Texts are those of a pipeline, without
 * its parentheses.
 *
 * A field is stacked: its samples, of one type and shape, lie along a new first
 * axis. `pad` and `pad_to` take samples of several shapes: each is padded to
 * pad_to's, by an element of the value. `ragged` puts the samples' rows, which
 * are those of their first axis, end to end; a field FIELD.offsets after it,
 * int64, has where each sample's rows begin, then their number
 * (leat_field_spec: offsets_of). A field whose rows are divided by offsets
 * already is ragged without being named, and so are these, so that groups of
 * groups have an offsets field for each level, the outermost first.
 *
 * A group that with its samples takes more than the caller's max_memory is
 * LEAT_ELIMIT, and so are buckets whose samples do.
 */
typedef struct leat_group_options {
    size_t size;        /* of this struct, as the caller knows it */
    const char *pad;    /* "tokens=0,mask=-1"; "0": every field that varies */
    const char *pad_to; /* "tokens=128,box=-1x4": the shapes; -1, and what is
                           not named: the group's longest */
    const char *ragged; /* "tokens,boxes" */
    int drop_last;      /* 1: no group is shorter than the others */
} leat_group_options;

/** Every default, written out. */
#define LEAT_GROUP_OPTIONS_INIT                                                \
    {                                                                          \
        sizeof(leat_group_options), NULL, NULL, NULL, 0                        \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_group_options_init(leat_group_options *options);

/**
 * `batch:N,pad=(...),pad_to=(...),ragged=(...),drop_last=1`: each `size`
 * samples of an epoch as one, whose first axis is theirs (leat_field_spec:
 * is_batch). A layer of batch_size 1 delivers it as it is. The last one of an
 * epoch is shorter, unless drop_last leaves it out. `options` NULL: all
 * defaults.
 *
 * A batch has the provenance of its first sample. A bad record makes its batch
 * one (LEAT_EDATA), and is named by its line and provenance, so that all other
 * batches have the samples that they would have without it; so do samples whose
 * types or shapes do not fit together.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_batch(leat_pipeline **out, leat_pipeline *upstream,
                                 int64_t size,
                                 const leat_group_options *options);

/**
 * `unbatch`: the rows of each sample's first axis as samples; what `batch`
 * makes, without it. All fields have as many; of a field that is ragged, a row
 * is what its outermost offsets, which are left out, give it. Over random
 * access whose first axis is fixed there is random access, too: a row is read
 * by making its group, which is kept until its thread reads a row of another
 * one. So in order each is made once, but for rows of several groups in turn,
 * as a `shuffle` or a strided `window` has them, it is made for each; over
 * large groups `unbatch | shuffle:N` is the cheaper order.
 *
 * A row has the provenance of its batch. A bad one has as many bad rows as
 * its first axis is promised to have, or else one; so it may have more once a
 * `cache:dir` of a stream is complete, and a token of the pass that made that
 * cache leads to earlier rows then: drop_last promises the rows in both.
 * LEAT_EDATA, too, if its fields have different numbers of rows, or offsets
 * that are none.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_unbatch(leat_pipeline **out,
                                   leat_pipeline *upstream);

/**
 * `window:SIZE,SHIFT,stride=N,...`: as a batch, `size` samples of an epoch, the
 * first one `shift` after that of the window before (0: size), each `stride`
 * (0: 1) after the one before; as tf.data's window. So a sample is in several
 * windows, or in none. Windows at the end of an epoch, in which samples are
 * missing, are shorter, unless drop_last leaves them out. A bad record makes
 * every window with it bad. Over random access each window reads its samples by
 * index, else (size - 1) stride + 1 samples are held.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_window(leat_pipeline **out, leat_pipeline *upstream,
                                  int64_t size, int64_t shift, int64_t stride,
                                  const leat_group_options *options);

/**
 * `bucket:FIELD,(10,20),batch=(8,4,2),to_bound=1,...`: samples of similar
 * lengths, which are the first dimension of `field`, as one; as tf.data's
 * bucket_by_sequence_length. `bounds` "10,20" makes three buckets: lengths
 * below 10, 10 to 19, and 20 or more. `batch` is the number of samples of a
 * batch, or one for each bucket: "8,4,2". A bucket is given when it has as
 * many, and at the end of the epoch what is left, of the shortest first,
 * unless options->drop_last leaves it out. Fields that vary are padded, with 0
 * unless options->pad names another value; with `to_bound` the field to the
 * greatest length of its bucket, and no sample may reach the last bound.
 *
 * A batch has the provenance of its first sample. A bad record is in no bucket:
 * it is returned by itself, as LEAT_EDATA. To resume reads again what the
 * buckets held, from the oldest sample on; where their sizes are more than 208
 * bits (35 buckets of 64) from the begin of the epoch.
 * Thread safety: any thread.
 */
LEAT_API int leat_pipeline_bucket(leat_pipeline **out, leat_pipeline *upstream,
                                  const char *field, const char *bounds,
                                  const char *batch, int to_bound,
                                  const leat_group_options *options);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
