/*
 * layer_state.h: the state of data layers: a group, and its members.
 *
 * DESIGN. A group has the reader, the workers and the position in the sequence;
 * a member, which is a data layer, has the state of its caller. A standalone
 * layer is a hidden group of one.
 *
 * A member belongs to the thread that calls it, and writes nothing of the
 * group's: all that may change there while members are called is the pointers
 * to reader and prefetcher, and before there is a reader the steps of its
 * opening, which cancel uses from other threads; those are set and cleared
 * under `lock`. What concerns the whole group, setup, save, restore
 * and destroy, comes when no member is called. Concurrency lives in the
 * prefetcher; members lend batches to blobs and take them back.
 *
 * A group belongs to the process that created it. In a forked child its threads
 * do not run and its locks may be held for ever, so every call compares
 * generations first, and destroy frees only what create made and nobody
 * changes.
 *
 * Restore is a new start: everything that runs is stopped and made anew at
 * another position, so that a cancelled or failed reader is no special case.
 */
#ifndef LEAT_LAYER_LAYER_STATE_H
#define LEAT_LAYER_LAYER_STATE_H

#include "layer/on_error/bad_record_log.h"
#include "layer/options/data_layer_options.h"
#include "layer/prefetcher.h"
#include "layer/tops/image_set.h"
#include "layer/wakeup.h"
#include "pipeline/opening.h"

#include <leat/data_layer_group.h>

#include <stdbool.h>

/* The latest log line about waiting; zeroed at the start. */
typedef struct leat__waiting {
    int64_t logged;  /* leat__clock_now; 0: never */
    leat_stats then; /* at that time */
} leat__waiting;

/* A member; all its caller's. What each forward touches comes first. */
struct leat_data_layer {
    leat_data_layer_group *group;
    leat_device *device;
    int number; /* in the group, and of its device in the prefetcher */
    int sticky; /* the status that every forward returns */

    leat__batch *current; /* held by the caller, or NULL */
    leat_stream stream;   /* that reads it since; LEAT_HOST: none */
    leat_stream checked;  /* the latest that the device takes */
    leat_batch view;
    leat__position after; /* the last batch that forward consumed */
    leat_token mark;      /* of the reader, there; may be empty */
    int64_t taken;        /* batches that it consumed since the start */
    int64_t batches;
    int64_t samples;
    int64_t waited; /* nanoseconds */
    leat__inline_mode mode;

    leat_data_layer_options values; /* the group's, but for name and device */
    char *name;                     /* the layer's, or "data[1]" in a group */
    leat__bad_record_log bad_records;
    leat_blob
        *top[LEAT_MAX_FIELDS]; /* owned; NULL where setup was given some */
    leat__waiting waiting;
    char sticky_line[LEAT__ERROR_MAX];
};

struct leat_data_layer_group {
    leat__layer_options options;
    leat_pipeline *pipeline; /* shared */
    leat__image_set images;
    int step;      /* ranks that divide the data */
    int cores;     /* that the process may use */
    bool is_alone; /* a layer by itself: it owns the group, not the group it */
    unsigned generation; /* of the process that created it */
    int n;
    leat_data_layer *member; /* n of them */
    leat_device **device;    /* theirs */

    /* changed by setup and restore */
    bool is_starting;
    bool may_help; /* forward works where it would wait */
    uint64_t seed;
    int ntop;                            /* 0 before setup */
    leat__top_plan plan;                 /* of the list alone before setup */
    leat__extent first[LEAT_MAX_FIELDS]; /* the shapes of the first batch */
    size_t room;         /* bytes of tops that a batch has from the start */
    leat_token identity; /* of the data set */
    bool has_mark;       /* its reader marks positions */
    bool can_seek;       /* or finds them by their index */
    bool cannot_resume;  /* its reader says so, */
    char cannot_resume_line[LEAT__ERROR_MAX]; /* by this line */
    bool reads_to_resume; /* it finds none but by reading, and no log said so */
    leat__position start; /* where the threads began, */
    leat_token start_mark; /* by this mark of the reader; may be empty, */
    int64_t first_number;  /* with the batch of this number */
    int64_t begun;         /* leat__clock_now then */

    pthread_mutex_t lock;
    /* changed under lock, read freely by the callers */
    leat__data_reader *reader;
    leat__prefetcher *prefetcher;
    leat__opening opening; /* of the reader that is not there yet */

    /*
     * Set by the first cancel, which alone takes the lock: the reader's cancel
     * runs under it, and may cancel the same layer, or another one whose reader
     * cancels this. It is set again under the lock, since restore clears it
     * there: it is never 0 while a reader's cancel runs for a cancel.
     */
    atomic_bool cancelled;

    leat_data_layer_group *next_abandoned; /* in a forked child */
};

/*
 * Makes a group of `n` members on the devices of these names. Errors:
 * LEAT_EINVAL, LEAT_EDEVICE, LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM.
 */
int leat__group_create(leat_data_layer_group **out,
                       const leat_pipeline *pipeline,
                       const leat_data_layer_options *options,
                       const char *const devices[], int n, bool is_alone);

/* LEAT_ESTATE in another process than the one that created the group. */
int leat__group_check_process(const leat_data_layer_group *group);

/*
 * LEAT_ESTATE on one of the group's own threads or one that works for it in
 * forward or a stop, and while it starts: a callback of its reader's calls,
 * which would wait for itself or free what is in use.
 */
int leat__group_check_caller(const leat_data_layer_group *group);

/* What its reader is opened with; borrows from the group. */
leat_open_options leat__group_open_options(const leat_data_layer_group *group);

/* Whether forward may work, by options and pipeline. */
bool leat__group_may_help(const leat_data_layer_group *group);

/*
 * From the first sample at `start` to running threads; `shape` is that of the
 * first batch. `ntop` 0: as many tops as there are. On failure leat__group_stop
 * undoes it.
 */
int leat__group_start(leat_data_layer_group *group, int ntop, leat_token *token,
                      leat__batch_shape *shape);

/*
 * Plans the tops from the fields of the open reader; `ntop` 0: as many as there
 * are. Errors: LEAT_EINVAL, LEAT_ESTATE.
 */
int leat__group_plan_tops(leat_data_layer_group *group, int ntop);

/*
 * The shapes of the first batch's tops, into `first`, and the room that batches
 * take to begin with; where that depends on all samples, the batch is read.
 */
int leat__group_measure_batch(leat_data_layer_group *group,
                              leat__batch_shape *shape);

/*
 * The bytes of a sample that are read and written; 0: some are decoded, which
 * takes longer than either.
 */
size_t leat__group_measure_sample(const leat_data_layer_group *group,
                                  const leat__batch_shape *shape,
                                  const leat_sample *sample, bool *decodes);

/*
 * The shape of the first record or, where that is bad, of another one nearby,
 * which `*out` then is. `spare` holds one that is read out of turn. `resumes`:
 * setup has found before that the options fit some record.
 */
int leat__group_find_shape(leat_data_layer_group *group, bool resumes,
                           const leat__batch_spec *spec, leat_sample *spare,
                           const leat_sample **out, leat__batch_shape *shape);

/* Stops everything that runs. Lent slabs live on. */
void leat__group_stop(leat_data_layer_group *group);

/* Whether the calling thread does: the reader's cancel is then the stop's. */
bool leat__group_is_stopping(const leat_data_layer_group *group);

/*
 * Where the group resumes, and the reader's mark there, borrowed. LEAT_ESTATE:
 * the batches its members took are not the beginning of the sequence.
 */
int leat__group_position(const leat_data_layer_group *group,
                         leat__position *out, const leat_token **mark);

/* LEAT_EINVAL if top `k` is NULL, on another device, or one of those before. */
int leat__data_layer_check_top(const leat_data_layer *layer,
                               leat_blob *const top[], int k);

/*
 * leat_error, with the status kept for every later forward; the other members
 * get it too, after what is made for them.
 */
int leat__data_layer_stick(leat_data_layer *layer, int status,
                           const char *line);

/*
 * Ends the loan of the batch that the caller holds, if any: the tops that have
 * it refuse to give it out from now on.
 */
void leat__data_layer_recall(const leat_data_layer *layer);

/* LEAT_ESTATE for a member, where only the group can. */
int leat__data_layer_check_alone(const leat_data_layer *layer,
                                 const char *function);

#endif
