/* leat/workspace.h: readers that several callers share. */
#ifndef LEAT_WORKSPACE_H
#define LEAT_WORKSPACE_H

#include <leat/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Shared readers by their names. Shared itself (reference counted). */
typedef struct leat_workspace leat_workspace;

/**
 * Creates an empty workspace, with names of its own. Owned by the caller:
 * leat_workspace_unref. Errors: LEAT_ENOMEM. Thread safety: any thread.
 */
LEAT_API int leat_workspace_create(leat_workspace **out);

/** Takes a reference. Thread safety: any thread. */
LEAT_API void leat_workspace_ref(leat_workspace *workspace);

/**
 * Drops a reference; the last one frees the workspace. Pipelines hold it. Takes
 * NULL. Thread safety: any thread.
 */
LEAT_API void leat_workspace_unref(leat_workspace *workspace);

/**
 * `UPSTREAM | share:NAME`: one reader of `upstream` for all that read the
 * pipeline, such as several layers, on any threads: each sample goes to one of
 * them. `share:NAME` alone, which is `upstream` NULL, finds the open reader of
 * that name.
 *
 * All pipelines with one name in one workspace share the reader, and have to
 * have the same upstream; NULL is the process's workspace, which texts use.
 * Without a name (NULL) the readers of this very pipeline share it. The first
 * one opens it, with its own seed, phase and threads; the last one closes it.
 * No reader sees an epoch without a sample: a caller that comes too late for
 * one has those of the next. One that begins the next epoch ends the current
 * one for all; a prefetch after the share begins it ahead, and takes of it.
 * After an error of the reader any caller's seek begins a pass.
 *
 * Which caller gets which sample depends on when they ask: several ranks are
 * refused, and so is leat_data_layer_save. So are readers with an allocator of
 * their own. The reader's figures and memory are not those of a caller's chain.
 * Waiting for another caller is woken by cancel. A caller that is cancelled
 * while it reads itself ends that reader for all if it may wait for ever, as on
 * a callback, a queue or a pipe; others are not disturbed. So does a layer, or
 * a reader with prefetch after the share, that is destroyed or closed while its
 * threads read: all others then get LEAT_ECANCELLED. A reader over another
 * share counts as one that may wait for ever, whatever that one reads. A reader
 * whose callers are all cancelled ends, whatever it does; while one is not, a
 * cancelled caller that reads waits for its samples, however long these take.
 *
 * Owned by the caller: leat_pipeline_unref. Errors: LEAT_EINVAL for neither an
 * upstream nor a name; LEAT_ENOMEM. When it is opened, LEAT_EINVAL for a name
 * of another reader, or of none. Thread safety: any thread.
 */
LEAT_API int leat_pipeline_share(leat_pipeline **out, leat_pipeline *upstream,
                                 const char *name, leat_workspace *workspace);

#ifdef __cplusplus
}
#endif
#endif
