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
    int64_t pass;   /* counted from 0: an epoch, or what was read of it before
                       a caller began the next */
    int64_t given;  /* samples of this pass */
    bool has_ended; /* the pass */

    /* The workspace's: guarded by its lock. */
    struct leat__shared_reader *next;
    leat_workspace *workspace; /* borrowed from the callers' pipelines */
    char *name;                /* NULL: none, but */
    const void *key;           /* the pipeline that its callers read */
    int callers;
    bool is_open;
} leat__shared_reader;

/*
 * Finds the reader that the pipeline of `open` shares, or opens it. Blocks as
 * the storage does; woken by a cancel of the thread's opening
 * (pipeline/opening.h). Errors: those of the readers; LEAT_EINVAL for a name of
 * another reader or of none.
 */
int leat__workspace_open(const leat_open *open, leat__shared_reader **out);

/* The last caller closes the reader. */
void leat__workspace_close(leat__shared_reader *shared);

#endif
