/* workspace.h: shared readers, found by name. */
#ifndef LEAT_DECORATORS_WORKSPACE_H
#define LEAT_DECORATORS_WORKSPACE_H

#include <leat/ext/reader.h>
#include <leat/workspace.h>

#include <pthread.h>
#include <stdbool.h>

/* A reader that several callers share. */
typedef struct leat__shared_reader {
    /* Immutable once it is open. */
    leat_pipeline *pipeline; /* shared */
    leat_reader *reader;
    bool may_wait;       /* for ever */
    unsigned generation; /* of the process that opened it */

    pthread_mutex_t lock;
    /* Guarded by lock. */
    const void *caller; /* the one that calls the reader; NULL: none does */
    pthread_cond_t idle;

    /* Of that caller. */
    int64_t pass;    /* counted from 0: an epoch, or what was read of it before
                        a caller began the next */
    int64_t given;   /* samples of this pass */
    bool has_ended;  /* the pass */
    bool has_failed; /* the reader, until it is sought */

    /* The workspace's: guarded by its lock. */
    struct leat__shared_reader *next;
    leat_workspace *workspace; /* borrowed from the callers' pipelines */
    char *name;                /* NULL: none, but */
    const void *key;           /* the pipeline that its callers read */
    int callers;
    int unneeding; /* of the callers, those that are cancelled or leave */
    bool is_open;
    bool is_ended; /* the reader is cancelled, and found no more */
} leat__shared_reader;

/*
 * Finds the reader that the pipeline of `open` shares, or opens it. Blocks as
 * the storage does; woken by a cancel of the thread's opening
 * (pipeline/opening.h). Errors: those of the readers; LEAT_EINVAL for a name of
 * another reader or of none.
 */
int leat__workspace_open(const leat_open *open, leat__shared_reader **out);

/* One more caller is cancelled. The last one cancels the reader; who opens the
 * pipeline then has another one. */
void leat__workspace_cancel(leat__shared_reader *shared);

/* Of a caller that is cancelled or not. The last one closes the reader; the
 * last that is not cancelled cancels it. */
void leat__workspace_close(leat__shared_reader *shared, bool is_cancelled);

#endif
