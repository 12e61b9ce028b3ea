/* leat/data_layer_options.h: the options of a data layer, and of its tops. */
#ifndef LEAT_DATA_LAYER_OPTIONS_H
#define LEAT_DATA_LAYER_OPTIONS_H

#include <leat/allocator.h>
#include <leat/dtype.h>
#include <leat/option.h>
#include <leat/transform.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Who reads storage. The bytes delivered are the same. */
typedef enum leat_reader_thread {
    LEAT_READER_AUTO = 0, /* a thread while storage can block, else workers */
    LEAT_READER_ON = 1,   /* Caffe's shape: a producer thread */
    LEAT_READER_OFF = 2   /* always the workers */
} leat_reader_thread;

/** Whose memory the tops have after forward. */
typedef enum leat_top_mode {
    LEAT_TOP_LEND = 0, /* the tops share the batch's memory until the next, at
                          the addresses of its slot (leat_data_layer_slots) */
    LEAT_TOP_COPY = 1  /* the tops keep their own memory and addresses; a caller
                          of several streams makes the next forward's stream
                          wait for the others' reads */
} leat_top_mode;

/** How samples whose shapes differ lie in a top. */
typedef enum leat_top_form {
    LEAT_TOP_DENSE = 0, /* end to end: all samples of a batch have one shape */
    LEAT_TOP_PAD = 1,   /* each padded at the ends of its axes; one more top,
                           "NAME.lengths", has the lengths before */
    LEAT_TOP_RAGGED = 2 /* the samples' rows end to end; one more top,
                           "NAME.offsets", says where each sample begins */
} leat_top_form;

/**
 * One top of a list: which field it takes, and how. Zero is the default of
 * every member but `size`, `name` and, where it is not called as the top is,
 * `field`.
 *
 * An image is decoded, cropped, mirrored and scaled, and is DENSE. Anything
 * else is numbers or bytes: those of the field, cast to `dtype` where that is
 * another type.
 *
 * PAD. The top is batch x `shape`; an axis of which `shape` has 0, or all where
 * `ndim` is 0, is as long as the batch's longest sample. A sample longer than
 * `shape` is a bad record. NAME.lengths, int64, has the length of each sample
 * along the axis that varies by the field's spec: batch; where several vary,
 * or none, batch x their number (of none: all).
 *
 * RAGGED. The top is rows x the other axes: only the first one may differ from
 * sample to sample. NAME.offsets, int64, batch + 1, has where each sample's
 * rows begin, then their number. Where another field divides the field's rows
 * (leat_field_spec: offsets_of), NAME.offsets divides the samples into that
 * one's groups, and NAME.offsets.1 the groups into rows; and so on, a top for
 * each level.
 *
 * These tops come directly after their own. A bad record of which on_error
 * makes zeros has no rows and length 0.
 */
typedef struct leat_top {
    size_t size;        /* of this struct; the same in all of a list */
    const char *name;   /* of the blob */
    const char *field;  /* NULL: the field called as the top is */
    leat_dtype dtype;   /* 0, which is BYTES: the field's; of an image the
                           option top_type. BYTES can become UINT8 too */
    leat_top_form form; /* how samples of different shapes lie in it */
    int ndim;           /* of `shape` */
    bool is_image;      /* decoded and transformed; dtype is FLOAT32, FLOAT64,
                           FLOAT16, BFLOAT16 or UINT8 */
    bool cast_lossy;    /* the cast may lose values: from floats to integers,
                           to fewer bits, from signed to unsigned; values out
                           of range are clamped. false: that is an error */
    const leat_transform_options *transform; /* of an image; NULL: the options'
                                              */
    const char *choices_of; /* the image whose random choices this one takes:
                               both have the same crop_size, mirror and image
                               size; NULL: its own. The first image of a list
                               has those of a layer without a list */
    double pad_value;       /* of PAD; one that the top's type holds */
    int64_t shape[LEAT_MAX_DIMS]; /* of one sample of PAD */
} leat_top;

/**
 * The `*n` options of a top that a text can set, in the order of the struct's
 * members. Static. Thread safety: any thread.
 */
LEAT_API const leat_option *leat_top_option_list(int *n);

/** Whether forward makes batches itself where it would wait. */
typedef enum leat_caller_helps {
    LEAT_CALLER_HELPS_AUTO = 0, /* yes, unless it would have to call a reader
                                   that may block for ever, such as a callback,
                                   on the caller's thread, or the layer is one
                                   of several with devices of their own, whose
                                   streams may wait for each other */
    LEAT_CALLER_HELPS_OFF = 1   /* never: it only waits */
} leat_caller_helps;

/**
 * What becomes of the last samples of an epoch, where they fill no batch of all
 * ranks. Order does not depend on it: of W ranks, rank p mod W takes the sample
 * at position p, under the same random choices, and every rank gets the same
 * number of batches.
 *
 * The length of an epoch is the readers' count. Where they have none, such as
 * callbacks, its end is found by reading; every rank then reads on to the end
 * of the batch of all ranks before it delivers its own part, and with DROP a
 * whole batch before the first of it. A pipeline with a single pass has one
 * epoch, in which these hold too, but with WRAP a rank that has no sample left
 * ends a batch before the others.
 *
 * A resume token is a position, whichever of these it was saved under: the next
 * batch begins there, and ends at the latest with that position's epoch.
 *
 * Where the records of a dense top differ in shape, a batch of PAD that has
 * none of them has the shape of the layer's first record, which after a restore
 * is another one than in the uninterrupted run.
 */
typedef enum leat_epoch_end {
    LEAT_EPOCH_END_WRAP = 0, /* the batch runs on into the next epoch, as in
                                Caffe */
    LEAT_EPOCH_END_DROP = 1, /* they are left out. An epoch that fills no batch
                                at all is LEAT_EINVAL at setup, or when its end
                                is found */
    LEAT_EPOCH_END_PARTIAL = 2, /* they are a smaller batch: the first axis of
                                   its tops is its `valid`, 0 on a rank that has
                                   none of them */
    LEAT_EPOCH_END_PAD = 3      /* they are a batch of full size: the rows from
                                   its `valid` on are zeros, labels too, of a
                                   LEAT_TOP_PAD the pad_value and length 0, and
                                   have LEAT_REPLACEMENT_PADDING */
} leat_epoch_end;

/** What becomes of a bad record (LEAT_EDATA). Positions never shift. */
typedef enum leat_on_error {
    LEAT_ON_ERROR_FAIL = 0, /* its batch is lost, forward returns the error */
    LEAT_ON_ERROR_ZERO = 1, /* its place is zeros, labels too; of a LEAT_TOP_PAD
                               the pad_value and length 0 */
    LEAT_ON_ERROR_REPLACE =
        2 /* its place gets the nearest earlier good record of
          its epoch or the one before, other ranks' included,
          under the place's own random choices; none: zeros.
          Of those that DROP leaves out only random access
          knows.
          After a restore a chain that is read in order has none yet.
          With several ranks the pipeline needs random access:
          over callbacks, for example, setup is LEAT_EINVAL */
} leat_on_error;

/** The `prefetch` of Caffe, the default. */
#define LEAT_PREFETCH_DEFAULT 4

/**
 * As deep as it takes: grows when forward finds nothing ready although the
 * workers had run out of room, up to max_memory or 256 MiB, and settles.
 */
#define LEAT_PREFETCH_AUTO (-1)

/**
 * The options of a data layer. Zero is the default of every field but `size`
 * and the batch's size, so that a designated initialiser names only what
 * differs:
 *
 *     leat_data_layer_options options = {.size = sizeof(options),
 *                                        .batch_size = 64};
 *
 * A number of which 0 is a value too has a flag beside it. The same value means
 * the same in a net file's leat_param and on the tool's command line;
 * leat_data_layer_options_set sets a field by name, and
 * leat_data_layer_option_list lists all of them with range, words and default.
 *
 * As in all structs of options, fields beyond `size` take their defaults, and
 * what a newer program's struct has beyond this library's must be 0: else it is
 * LEAT_EINVAL, as is a size that no options have.
 */
typedef struct leat_data_layer_options {
    size_t size; /* of this struct, as the caller knows it */

    /* The layer. */
    const char *name;        /* NULL: "data" */
    const char *const *tops; /* their names, NULL-terminated; NULL: the
                                fields' */
    const char *device;      /* where batches end; NULL: "cpu" */
    leat_phase phase;        /* TRAIN crops at random, TEST in the centre */

    /* The choice among a net file's data layers, and its files. */
    int level;                 /* the net state's; 0: the file's */
    const char *layer;         /* by name; NULL: the only one */
    const char *const *stages; /* the net state's, NULL-terminated; or NULL */
    const char *source; /* path of an LMDB to read instead of the file's source
                           or reader, which may then be missing; NULL: the
                           file's */
    const char *mean_file; /* path of a mean file to subtract instead of the
                              file's mean; NULL: the file's */

    /* Batches and ranks. */
    int64_t batch_size;        /* samples in a batch of this rank, at least 1 */
    int64_t global_batch_size; /* samples in a batch of all ranks; may replace
                                  batch_size. With both it must be world_size *
                                  batch_size */
    int rank;       /* in TRAIN it takes the positions p of the endless sequence
                       (all epochs, counted on) with p mod world_size == rank */
    int world_size; /* ranks, 1 to 65535, what a resume token has room for; 0:
                       1. leat_launcher_ranks (leat/launcher.h) gives both */
    bool shard_test; /* TEST is divided between the ranks as TRAIN is */
    leat_epoch_end epoch_end; /* what becomes of the samples that fill no batch
                                 at the end of an epoch */

    /* The transform and the tops. */
    leat_transform_on transform_on; /* DEVICE: pixels are uint8 or encoded, and
                                       top_type is not FLOAT64 */
    leat_dtype top_type;    /* FLOAT32, FLOAT64, FLOAT16, BFLOAT16, or UINT8 (no
                               mean, no scale); 0, which is BYTES: FLOAT32 */
    leat_dtype label_type;  /* of all other tops, not FLOAT16 or BFLOAT16; 0,
                               which is BYTES: FLOAT64 when top_type is, else
                               FLOAT32 */
    leat_layout layout;     /* of images */
    leat_top_mode top_mode; /* whose memory the tops have */
    const leat_transform_options *transform; /* of the first field, whatever its
                                                name; NULL: none */
    const leat_top *top; /* which fields become which tops, instead of `tops`;
                            NULL: an image of the first field, and a top of
                            label_type of each other one */
    int ntop;            /* of `top`, 0 to LEAT_MAX_FIELDS */

    /* Threads and prefetch. */
    int prefetch; /* batches made ahead: 1 to 2^20, or LEAT_PREFETCH_AUTO; 0:
                     4 */
    int workers;  /* threads, up to 1024; 0: as many as the machine lends */
    leat_reader_thread reader_thread; /* who reads */
    leat_caller_helps caller_helps;   /* whether a forward that would wait works
                                         instead */

    /* Memory. */
    size_t max_memory;      /* bytes that batches, on host and device, and the
                               readers' buffers at setup may take; prefetch
                               shrinks to fit the first sample. What batches of
                               larger ones take beyond that counts, too, until
                               the layer is restored or destroyed, or another
                               batch needs it: one that is ready or in use keeps
                               twice what it needs at most, and one with dense
                               tops beside ragged or padded ones may need it
                               twice as it grows. Forward is LEAT_ELIMIT where
                               they do not fit. Tops' own memory, of copies and
                               of what the host reads of one that the device
                               computed, is the blobs'.
                               Samples that a reader's thread has read ahead may
                               take as much again, up to 256 MiB, and so may
                               those that workers have at work, of which each
                               has one, twice as large while its buffer grows,
                               and up to 320 KiB. After setup each buffer of a
                               reader's has this limit by itself: the inputs of
                               a chain or a mix may come to so many times as
                               much. 0: no limit */
    size_t max_image_bytes; /* memory that decoding one image may take, pixels
                               and coefficients; one that takes more is a bad
                               record. 0: LEAT_IMAGE_BYTES_DEFAULT, or with
                               max_memory a quarter of that, from 64 MiB to
                               LEAT_IMAGE_BYTES_DEFAULT */
    bool must_pin; /* an error where the device cannot pin the batches' host
                      memory; false: they are then copied from pageable memory,
                      which leat_memory_stats counts */
    /* Where large memory comes from; copied; NULL: leat's own. */
    const leat_allocator *host_allocator;   /* batches on a device that computes
                          in host memory, and the buffers of samples that readers
                          do not give as views */
    const leat_allocator *pinned_allocator; /* the host side of batches on any
                        other device, which it must reach by DMA */

    /* Bad records. */
    leat_on_error on_error;      /* what becomes of a bad record */
    const char *bad_record_file; /* gets a line for each bad record that it does
                                    not list yet; NULL: none.
                                    docs/reliability.md */
    int64_t max_errors;  /* with ZERO and REPLACE: more different bad records
                            than this are LEAT_ELIMIT. A record counts once
                            since setup, however many epochs meet it; restore
                            forgets those met at its position or later. 0 or
                            -1: no limit */
    bool has_max_errors; /* a max_errors of 0 allows none */

    /* Random choices. */
    leat_rng rng;         /* CAFFE: its sequence, a generator a rank */
    int64_t random_seed;  /* 0 or below: drawn from the system: keep what
                             leat_data_layer_seed returns. Several ranks that
                             choose at random need one, also to resume */
    bool has_random_seed; /* a random_seed of 0 is the seed 0; a negative one is
                             drawn all the same */
} leat_data_layer_options;

/** Every default: zeros after the size. */
#ifdef __cplusplus
#define LEAT_DATA_LAYER_OPTIONS_INIT leat__data_layer_options_defaults()
inline leat_data_layer_options leat__data_layer_options_defaults(void)
{
    leat_data_layer_options options = leat_data_layer_options();
    options.size = sizeof(options);
    return options;
}
#else
#define LEAT_DATA_LAYER_OPTIONS_INIT                                           \
    {                                                                          \
        .size = sizeof(leat_data_layer_options)                                \
    }
#endif

/**
 * Writes every default out, for bindings: where the macro has 0, `prefetch` is
 * 4, `world_size` 1, `top_type` FLOAT32, `max_errors` and `random_seed` -1, and
 * `name` and `device` have their texts. `options->size` is set by the caller:
 * no more is written. Errors: LEAT_EINVAL for a size that no options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_data_layer_options_init(leat_data_layer_options *options);

/**
 * All `*n` options, in the order of the struct's members. `size` and the has_*
 * flags have no entries: setting an option by name sets its flag. Static.
 * Thread safety: any thread.
 */
LEAT_API const leat_option *leat_data_layer_option_list(int *n);

/**
 * Sets the option of that name, such as "prefetch", to what the text says, as
 * leat_option_set does. Errors: LEAT_EINVAL. Thread safety: any thread.
 */
LEAT_API int leat_data_layer_options_set(leat_data_layer_options *options,
                                         const char *name, const char *text);

#ifdef __cplusplus
}
#endif

#endif
