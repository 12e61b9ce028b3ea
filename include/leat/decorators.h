/*
 * leat/decorators.h: pipelines over other pipelines, by code. Each function
 * makes what the pipeline text of the same name makes (`leat readers NAME`).
 *
 * Upstream pipelines are shared: the caller keeps its own reference. The result
 * is owned by the caller: leat_pipeline_unref. Errors of all: LEAT_EINVAL for
 * values out of range or options that are not initialised, LEAT_ENOMEM. All may
 * be called on any thread. Nothing is opened yet: what depends on the upstream
 * readers fails when the pipeline is opened.
 *
 * leat/groups.h has those that make groups, leat/maps.h those that work on each
 * sample; both are included here.
 *
 * Over upstream readers with random access a decorator has it, too, where it
 * only chooses which samples come where; else it is sequential.
 */
#ifndef LEAT_DECORATORS_H
#define LEAT_DECORATORS_H

#include <leat/groups.h>
#include <leat/maps.h>
#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @name Which samples, and in what order
 * Thread safety: any thread.
 * @{
 */

/** `take:N`: the first `count` samples of each epoch; -1: all. */
LEAT_API int leat_pipeline_take(leat_pipeline **out, leat_pipeline *upstream,
                                int64_t count);

/** `skip:N`: each epoch without its first `count` samples; -1: without all. */
LEAT_API int leat_pipeline_skip(leat_pipeline **out, leat_pipeline *upstream,
                                int64_t count);

/**
 * `repeat:N`: `times` epochs of the upstream reader as one, each in its own
 * order; -1: an epoch without an end, of as many passes as are asked for. Over
 * nothing it ends. A single pass is not repeated.
 */
LEAT_API int leat_pipeline_repeat(leat_pipeline **out, leat_pipeline *upstream,
                                  int64_t times);

/**
 * `shard:N,I`: the samples `index`, `index` + `shards` and so on of each epoch.
 * With `require_non_empty` fewer samples than shards are LEAT_EINVAL: when the
 * pipeline is opened, or over a stream at the end of the epoch.
 */
LEAT_API int leat_pipeline_shard(leat_pipeline **out, leat_pipeline *upstream,
                                 int64_t shards, int64_t index,
                                 int require_non_empty);

/**
 * Options of leat_pipeline_transform. Zero is the default of all but `size`.
 */
typedef struct leat_transform_map_options {
    size_t size;        /* of this struct, as the caller knows it */
    const char *field;  /* NULL: the first field */
    leat_dtype dtype;   /* of the result; 0: FLOAT32. FLOAT64, FLOAT16,
                           BFLOAT16, or UINT8 without mean and scale */
    leat_layout layout; /* NCHW: channels first */
    uint64_t seed;      /* of random choices, with has_seed */
    int has_seed;       /* 0: it is made of the caller's */
    uint32_t choices;   /* with one seed, those of one number choose alike */
    int64_t max_image_bytes; /* memory of decoding one image; 0:
                                LEAT_IMAGE_BYTES_DEFAULT */
} leat_transform_map_options;

/** Every default, written out. */
#define LEAT_TRANSFORM_MAP_OPTIONS_INIT                                        \
    {                                                                          \
        sizeof(leat_transform_map_options), NULL, (leat_dtype)0, LEAT_NCHW, 0, \
            0, 0, 0                                                            \
    }

/** Writes every default, as leat_open_options_init does. */
LEAT_API int
leat_transform_map_options_init(leat_transform_map_options *options);

/**
 * `transform:data,crop_size=227,mirror=1,mean_value=(104,117,123),seed=7`:
 * Caffe's transform of a field, by the names of leat_transform_options, for
 * samples that are transformed before they are grouped, or that no data layer
 * delivers. An encoded image is decoded. In the phase TRAIN a crop is random.
 *
 * The choices are those that a data layer makes for its first image with
 * `random_seed` 7 and its own generator (rng LEAT), where the sample has the
 * same epoch and position: the map's own, so put it after a shuffle. An image
 * that is too small for the crop, or cannot be decoded, is LEAT_EDATA; a mean
 * of another shape ends reading. Both options may be NULL.
 */
LEAT_API int leat_pipeline_transform(leat_pipeline **out,
                                     leat_pipeline *upstream,
                                     const leat_transform_options *transform,
                                     const leat_transform_map_options *options);

/**
 * `where:label=0..4`: the samples whose scalar fields have certain values. A
 * condition is FIELD=VALUES: a number, a range with both its ends (0..4, 5..,
 * ..4), or several of these, (1,3,7..9); with ! before it, all others. All
 * conditions have to hold. NaN is in no range. What is said of
 * leat_pipeline_filter holds here, too.
 */
LEAT_API int leat_pipeline_where(leat_pipeline **out, leat_pipeline *upstream,
                                 const char *conditions);

/**
 * Whether the sample is given, in `*keep`: 1 or 0, which it is before. The
 * sample is complete, and may not be changed. Status: as of leat_map_function.
 */
typedef int leat_filter_function(void *user, const leat_sample *sample,
                                 int *keep);

/** Options of leat_pipeline_filter. Zero is the default of all but `size`. */
typedef struct leat_filter_options {
    size_t size;                 /* of this struct, as the caller knows it */
    const char *name;            /* for errors; NULL: "filter" */
    int may_block;               /* 1: calls may block, as on a socket */
    void (*cancel)(void *user);  /* any thread; needed if calls can block */
    void (*release)(void *user); /* after the pipeline and all its readers, or
                                    when it could not be made */
} leat_filter_options;

/** Every default, written out. */
#define LEAT_FILTER_OPTIONS_INIT                                               \
    {                                                                          \
        sizeof(leat_filter_options), NULL, 0, NULL, NULL                       \
    }

/** Writes every default, as leat_open_options_init does. */
LEAT_API int leat_filter_options_init(leat_filter_options *options);

/**
 * The samples for which the function is true. It is called for one sample at a
 * time, in order, on whatever thread reads; samples are completed before, so
 * work that is not needed to choose belongs after the filter, where workers do
 * it in parallel. The result has no random access, count or seek by index: a
 * layer resumes it by its marks. A bad record is given, as its error. `user` is
 * borrowed until the pipeline and all its readers are freed; `id` identifies
 * function and user to resume tokens. `options` may be NULL.
 */
LEAT_API int leat_pipeline_filter(leat_pipeline **out, leat_pipeline *upstream,
                                  leat_filter_function *function, void *user,
                                  uint64_t id,
                                  const leat_filter_options *options);

/** How samples are shuffled. Zero is the default of all members. */
typedef struct leat_shuffle_options {
    size_t size;         /* sizeof(leat_shuffle_options) */
    int64_t buffer;      /* samples of a buffer to draw from; 0: none */
    int64_t block;       /* samples of a block; 0: no blocks */
    int64_t seed;        /* with has_seed: of the order, from 0 */
    int has_seed;        /* 0: the layer's seed, or that of opening */
    int same_each_epoch; /* 1: the same order in each epoch */
    int files;           /* 1: of files, in place of a buffer or blocks */
} leat_shuffle_options;

/** Every default, written out. */
#define LEAT_SHUFFLE_OPTIONS_INIT                                              \
    {                                                                          \
        sizeof(leat_shuffle_options), 0, 0, 0, 0, 0, 0                         \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 * Thread safety: any thread.
 */
LEAT_API int leat_shuffle_options_init(leat_shuffle_options *options);

/**
 * `shuffle`, `shuffle:block=N`, `shuffle:files`, `shuffle:N`: a random order of
 * each epoch's samples, another one in each; `options` may be NULL. It depends
 * on the seed, the epoch and the position alone.
 *
 * By itself all samples are permuted, and with `block` blocks of consecutive
 * samples, and those of each block: both are computed, hold no memory, and need
 * upstream readers with random access and an end (LEAT_EUNSUPPORTED). With
 * `files` the files of a reader of several with random access, or the readers
 * of a chain, come in another order, each as it is; for streams
 * `files:PATTERN | shuffle | interleave:(text:{}),cycle=1` does the same.
 *
 * With `buffer` up to 2^31 - 1 samples are held, over any reader: each position
 * takes one at random and the next sample of the upstream reader replaces it,
 * so that position k gives one of the first k + `buffer`. A buffer that does
 * not fit max_memory, with the samples of groups that are in it, is
 * LEAT_ELIMIT. A resumed run finds the buffer's samples by their indices, or
 * reads from the oldest one on.
 */
LEAT_API int leat_pipeline_shuffle(leat_pipeline **out, leat_pipeline *upstream,
                                   const leat_shuffle_options *options);

/**
 * `constant:N`: the first good sample of the upstream reader's first epoch, N
 * times in each epoch; -1: without an end. It is read when the pipeline is
 * opened; over a reader without a good sample there is none.
 */
LEAT_API int leat_pipeline_constant(leat_pipeline **out,
                                    leat_pipeline *upstream, int64_t count);

/** @} */

/**
 * @name Several inputs
 * Thread safety: any thread.
 * @{
 */

/**
 * `(A) (B) | chain`: the `n` pipelines one after the other in each epoch. Their
 * fields must have the same names and types, and be batches or none; shapes may
 * differ, and then vary: LEAT_EINVAL names the field and both, when the fields
 * are asked for.
 */
LEAT_API int leat_pipeline_chain(leat_pipeline **out,
                                 leat_pipeline *const upstream[], int n);

/** What zip's inputs have in common. */
typedef enum leat_align {
    LEAT_ALIGN_LENGTH = 0,   /* as many samples; else LEAT_EFORMAT */
    LEAT_ALIGN_SHORTEST = 1, /* nothing: zip ends with the shortest */
    LEAT_ALIGN_KEY = 2       /* as many samples, of the same keys */
} leat_align;

/** Options of zip. Zero is the default of every field but `size`. */
typedef struct leat_zip_options {
    size_t size;               /* of this struct, as the caller knows it */
    leat_align align;          /* checked while reading */
    const char *const *prefix; /* of the names of each input's fields: as many
                                  as inputs; NULL: none */
} leat_zip_options;

/** Every default, written out. */
#define LEAT_ZIP_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(leat_zip_options), LEAT_ALIGN_LENGTH, NULL                      \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 */
LEAT_API int leat_zip_options_init(leat_zip_options *options);

/**
 * `zip:align=A,prefix=(P,...)`: the fields of `n` inputs side by side, at most
 * LEAT_MAX_FIELDS in all. Provenance is the first input's; errors name that of
 * the input at fault. A bad record of one input is a bad sample of zip, and the
 * others step over theirs.
 *
 * Over random access zip has it, too, and compares lengths when it is opened;
 * over streams the error comes after the last complete sample, as paddle's
 * compose has it. Opening is LEAT_EINVAL where two inputs have a field of the
 * same name, and no prefixes. With LEAT_ALIGN_KEY a sample without a key is an
 * error. `options` may be NULL.
 */
LEAT_API int leat_pipeline_zip(leat_pipeline **out,
                               leat_pipeline *const upstream[], int n,
                               const leat_zip_options *options);

/** Options of interleave. Zero is the default of every field but `size`. */
typedef struct leat_interleave_options {
    size_t size;          /* of this struct, as the caller knows it */
    const char *pipeline; /* a reader for each name, which is put in the place
                             of {}: "tfrecord:{}"; NULL: the upstream readers */
    int cycle;     /* readers that have turns at a time; 0: all, or 4 of a
                      pipeline */
    int64_t block; /* samples of a turn; 0: 1 */
    int ahead; /* readers of a pipeline that are opened before their turn; 0: 1;
                  below 0: none */
} leat_interleave_options;

/** Every default, written out. */
#define LEAT_INTERLEAVE_OPTIONS_INIT                                           \
    {                                                                          \
        sizeof(leat_interleave_options), NULL, 0, 0, 0                         \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 */
LEAT_API int leat_interleave_options_init(leat_interleave_options *options);

/**
 * `interleave:(PIPELINE),cycle=C,block=B`: `block` samples of each of `cycle`
 * readers in turn, in tf.data's order: a reader that has ended leaves its turn,
 * and the next reader comes in its place when it would be its turn again.
 *
 * Without a pipeline the `n` upstream readers, of equal fields, are
 * interleaved; over random access by index, unless turns are so irregular that
 * more than 2^20 would be planned. With a pipeline the one upstream reader's
 * samples are names, each one field of 1 to 65,536 bytes, and at most cycle +
 * ahead readers are open at a time: as they are closed on the way, samples are
 * completed and copied before. Their fields have the names and types of the
 * first one's.
 * A file that `files` names, one of up to 4096, and that was written since is
 * LEAT_EIO at a seek.
 */
LEAT_API int leat_pipeline_interleave(leat_pipeline **out,
                                      leat_pipeline *const upstream[], int n,
                                      const leat_interleave_options *options);

/** What becomes of an epoch of mix when an input has ended. */
typedef enum leat_mix_end {
    LEAT_MIX_STOP = 0,  /* it ends when an input is drawn that has ended */
    LEAT_MIX_DROP = 1,  /* it goes on with the others, by their weights */
    LEAT_MIX_REPEAT = 2 /* the input is begun again, until all have ended */
} leat_mix_end;

/** Options of mix. Zero is the default of every field but `size`. */
typedef struct leat_mix_options {
    size_t size;          /* of this struct, as the caller knows it */
    const double *weight; /* of each input, in millionths; NULL: all the same */
    int even;             /* 1: as regular as can be; 0: by the seed */
    leat_mix_end on_end;  /* what follows the end of an input */
    uint64_t seed;        /* with has_seed */
    int has_seed; /* 0: it is made of the caller's, as for all readers */
} leat_mix_options;

/** Every default, written out. */
#define LEAT_MIX_OPTIONS_INIT                                                  \
    {                                                                          \
        sizeof(leat_mix_options), NULL, 0, LEAT_MIX_STOP, 0, 0                 \
    }

/**
 * Writes every default, as the macro does, for bindings. `options->size` is set
 * by the caller: no more is written. Errors: LEAT_EINVAL for a size that no
 * options have.
 */
LEAT_API int leat_mix_options_init(leat_mix_options *options);

/**
 * `mix:W,...,even=E,on_end=END,seed=S`: samples of `n` inputs of equal fields,
 * at most 256, each input's in its own order.
 *
 * With `even` the number of samples of each input is within one of its weight
 * at every place. Else draws are by the seed, another order each epoch, and
 * exact at the end of each block: 256 samples, or the next multiple of the sum
 * of the smallest whole weights, which is at most 1,000,000. The length of an
 * epoch is that of the even order.
 *
 * Over random access mix has it, too. Else an input's end is found when it is
 * drawn, and inputs are at most 32. The orders may differ, so a resume token of
 * one is refused by the other. An input with the `cache:dir` of a stream counts
 * as a stream, also once the directory is there, unless it has a `shuffle` or
 * `constant` with random access of its own. `options` may be NULL.
 */
LEAT_API int leat_pipeline_mix(leat_pipeline **out,
                               leat_pipeline *const upstream[], int n,
                               const leat_mix_options *options);

/**
 * `merge:buffer=B`: samples of `n` inputs of equal fields, at most 256, in the
 * order of their arrival: a thread reads each, up to `buffer` samples ahead, of
 * which its part of a quarter of the caller's max_memory may have room for
 * fewer, but always for one of each input; 0: 8. That order does not come
 * again: opening it for several ranks is LEAT_EUNSUPPORTED, and saving it an
 * error.
 */
LEAT_API int leat_pipeline_merge(leat_pipeline **out,
                                 leat_pipeline *const upstream[], int n,
                                 int buffer);

/** @} */

/**
 * @name Memory and time
 * Thread safety: any thread.
 * @{
 */

/** How leat_pipeline_cache keeps samples. Zero is the default of all fields but
 * `size`. */
typedef struct leat_cache_options {
    size_t size;     /* sizeof(leat_cache_options) */
    int64_t bytes;   /* of memory; 0: a quarter of the caller's max_memory, or
                        1 GiB */
    const char *dir; /* a directory, instead of memory; NULL: none */
} leat_cache_options;

/** Every default, written out. */
#define LEAT_CACHE_OPTIONS_INIT                                                \
    {                                                                          \
        .size = sizeof(leat_cache_options)                                     \
    }

/** Sets each option to its default; `size` stays, and no more is written.
 * Errors: LEAT_EINVAL for a size that no options have. */
LEAT_API int leat_cache_options_init(leat_cache_options *options);

/**
 * `cache:BYTES`: keeps the samples of the upstream reader's first epoch in
 * memory and gives them again in every epoch, as stable views. What does not
 * fit is read again each time, and the log says so once. As in tf.data every
 * epoch is the first: order and random work that change from epoch to epoch
 * belong after it. An epoch without an end is refused.
 *
 * Over random access any threads fill it, and only samples that are read are
 * kept. Over a stream it keeps them from the first one on, completes them on
 * the thread that reads (put prefetch before it), and needs the stream no
 * more once a whole epoch is kept, so that a single pass gives any number.
 * Where the stream's order does not come again, as merge's, an epoch that does
 * not fit leaves nothing kept.
 *
 * `cache:dir=PATH`: keeps all samples on disk. The first reader writes them to
 * PATH.partial while it reads, and renames that to PATH once it has every
 * sample of an epoch; a process that is killed before, or a full disk, leaves
 * no PATH, or the empty directory that was there. Until then another reader
 * that would write is refused (LEAT_ESTATE), and so are a PATH that no
 * directory can be renamed to, such as "." or a mount point, and a PATH.partial
 * with files that are not of an unfinished cache (LEAT_EINVAL). Where files
 * cannot be locked (flock), as on Lustre that is mounted without, the log says
 * so, and a PATH.partial that is there is refused, since nothing tells another
 * reader's from that of a killed process: the user removes it. Where PATH is
 * there at open, samples are views of its map, with random access, also over a
 * stream; it is refused where it was made of another data set or pipeline, or
 * for another phase (LEAT_EINVAL), and for another random_seed where something
 * upstream draws from it, or is damaged (LEAT_EFORMAT). Another data set is
 * also one whose files were written since, by their times of modification, or
 * by the transaction of a database; so is a copy with times of its own. Two
 * versions of one size and time, as of an archive, are told apart by a hash of
 * the ends of files that are mapped, and of all of the labels of `idx` and a
 * `mean_file`: not where they differ in the middle alone or are streams. What
 * comes through pipes cannot be told from other data, and is refused
 * (LEAT_EUNSUPPORTED); what callbacks and maps give is not looked at. A sample
 * whose checksum is wrong is a bad record. A cache is trusted as data are: in a
 * directory where anybody may make one, as in /tmp, it may be another user's.
 * Where PATH.partial cannot be made, as in a directory that may not be written
 * to, open fails (LEAT_EIO); where the cache cannot be completed, as on a disk
 * that fills, the log says so, and samples are read from upstream. The index of
 * the samples takes 25 bytes of memory each: where the caller's max_memory has
 * no room for it, open fails (LEAT_ELIMIT), or, over a stream without a count,
 * the cache is not completed.
 */
LEAT_API int leat_pipeline_cache(leat_pipeline **out, leat_pipeline *upstream,
                                 const leat_cache_options *options);

/**
 * Removes every PATH.partial of this process, and makes no cache from now on:
 * for a program that ends, as by a signal, while a thread is in a call that no
 * cancel ends soon, such as an opening or a sync of the disk. A cache that is
 * being made is not completed, and the log says so; opening a reader that would
 * make one is LEAT_ECANCELLED. Permanent, also in children that are forked
 * later; a cache that is there is read on. May block as the storage does. Not
 * for a signal handler. Thread safety: any thread, at any time.
 */
LEAT_API void leat_caches_abandon(void);

/**
 * `drop_behind`: every mapped file below it drops the pages that were read in
 * order from memory, as its own drop_behind=1 does; one that has drop_behind=0
 * does not. It passes samples on as they are. Random access drops nothing.
 */
LEAT_API int leat_pipeline_drop_behind(leat_pipeline **out,
                                       leat_pipeline *upstream);

/** How leat_pipeline_prefetch reads ahead. Zero is the default of all fields
 * but `size`. */
typedef struct leat_prefetch_options {
    size_t size;       /* sizeof(leat_prefetch_options) */
    int64_t samples;   /* read ahead at most; 0 or -1: chosen, as below */
    int threads;       /* that read; 0: 1 */
    int64_t max_bytes; /* that the chosen number may take, at most the caller's
                          max_memory; 0: its part of a quarter of that, or
                          256 MiB */
    bool unordered;    /* samples come as they are ready */
} leat_prefetch_options;

/** Every default, written out. */
#define LEAT_PREFETCH_OPTIONS_INIT                                             \
    {                                                                          \
        .size = sizeof(leat_prefetch_options), .threads = 1                    \
    }

/** Sets each option to its default; `size` stays, and no more is written.
 * Errors: LEAT_EINVAL for a size that no options have. */
LEAT_API int leat_prefetch_options_init(leat_prefetch_options *options);

/**
 * `prefetch:N,threads=T`: reads up to N samples ahead and does their deferred
 * work, on threads of its own, which the first sample asked for starts. The
 * same samples in the same order; it reads into the next epoch before the end
 * of this one was delivered. `prefetch:auto` begins with 16 samples a thread,
 * and doubles whenever the caller finds none although there had been no room.
 * It holds no more than max_bytes has room for, were the next ones as large as
 * the largest of the last 64 or more: one at least, and only one before the
 * first is read. A given N holds no more than its part of a quarter of the
 * caller's max_memory has room for beside its slots, 4 KiB each, likewise: all
 * prefetch and merge of a pipeline share that quarter evenly, those of an
 * interleave's template as one. A layer's setup leaves it that, or max_bytes.
 *
 * With `unordered=1` samples come as they are ready, but none before the end
 * of its epoch's predecessor; then several ranks are refused, as are save, and
 * seek to any index but 0. A data layer that reads by index does all that on
 * its own workers, and starts no thread here. tf.data's buffer of 0, which
 * reads nothing ahead, is `auto` here.
 */
LEAT_API int leat_pipeline_prefetch(leat_pipeline **out,
                                    leat_pipeline *upstream,
                                    const leat_prefetch_options *options);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
