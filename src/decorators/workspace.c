/*
 * DESIGN. A workspace lists the shared readers that are open, or being opened.
 * One lock protects the lists and the counts of callers; a reader is opened and
 * closed without it, as that may read storage, and open or close readers of the
 * same workspace. A caller that finds one being opened waits on `opened`, and a
 * cancel of its own opening wakes it. No two readers wait for each other: a
 * name alone does not wait, and a pipeline is no part of its own upstream.
 *
 * In a forked child the parent's readers are not found. Lock and `opened` are
 * the process's, not a workspace's, so that a child has them new: the parent's
 * threads may have held the one and waited on the other.
 */
#include "decorators/workspace.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/opening.h"
#include "pipeline/pipeline.h"

#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;

struct leat_workspace {
    atomic_int references;
    /* Guarded by lock; whole at any moment. */
    leat__shared_reader *first;
};

/* That of texts. */
static leat_workspace process_workspace = {.references = 1};

/* Runs in a child, while it has a single thread. */
static void forget_parent(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    opened = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

int leat_workspace_create(leat_workspace **out)
{
    leat_workspace *workspace = leat__alloc_zero(1, sizeof(*workspace));
    if (!workspace)
        return LEAT_ENOMEM;
    atomic_init(&workspace->references, 1);
    *out = workspace;
    return LEAT_OK;
}

void leat_workspace_ref(leat_workspace *workspace)
{
    atomic_fetch_add_explicit(&workspace->references, 1, memory_order_relaxed);
}

void leat_workspace_unref(leat_workspace *workspace)
{
    if (!workspace || atomic_fetch_sub(&workspace->references, 1) > 1)
        return;
    leat__free(workspace);
}

/* Whether both read the same: pipelines with an object have no text that says
 * all. */
static bool is_same(const leat_pipeline *a, const leat_pipeline *b)
{
    if (a == b)
        return true;
    bool same = a->type == b->type && a->args.object == b->args.object &&
                a->nupstream == b->nupstream && strcmp(a->text, b->text) == 0;
    for (int i = 0; same && i < a->nupstream; i++)
        same = is_same(a->upstream[i], b->upstream[i]);
    return same;
}

static leat__shared_reader *find(leat_workspace *workspace, const char *name,
                                 const void *key)
{
    leat__shared_reader *one = workspace->first;
    for (; one; one = one->next) {
        if (one->generation != leat__fork_generation())
            continue;
        if (name ? one->name && strcmp(one->name, name) == 0 : one->key == key)
            break;
    }
    return one;
}

static void destroy(leat__shared_reader *shared)
{
    if (shared->is_open)
        leat_reader_close(shared->reader);
    leat_pipeline_unref(shared->pipeline);
    pthread_cond_destroy(&shared->idle);
    pthread_mutex_destroy(&shared->lock);
    leat__free(shared->name);
    leat__free(shared);
}

static leat__shared_reader *new_shared(const leat_open *open, const char *name)
{
    leat__shared_reader *shared = leat__alloc_zero(1, sizeof(*shared));
    if (!shared)
        return NULL;
    if (name && !(shared->name = leat__strdup(name)))
        goto fail_self;
    if (leat__mutex_init(&shared->lock))
        goto fail_name;
    if (leat__cond_init(&shared->idle))
        goto fail_lock;
    shared->pipeline = open->pipeline[0];
    leat_pipeline_ref(shared->pipeline);
    shared->key = name ? NULL : open->args;
    shared->generation = leat__fork_generation();
    return shared;

fail_lock:
    pthread_mutex_destroy(&shared->lock);
fail_name:
    leat__free(shared->name);
fail_self:
    leat__free(shared);
    return NULL;
}

/* Takes it out of the list, under the workspace's lock. */
static void remove_shared(leat__shared_reader *shared)
{
    leat__shared_reader **at = &shared->workspace->first;
    while (*at != shared)
        at = &(*at)->next;
    *at = shared->next;
}

/* Under the lock: another caller of one that is there. */
static int join(leat__shared_reader *shared, const leat_open *open)
{
    const leat_pipeline *pipeline = shared->pipeline;
    if (open->nupstream > 0 && !is_same(open->pipeline[0], pipeline))
        return leat_error(LEAT_EINVAL,
                          "share: \"%s\" is a reader of %s already, not of %s",
                          shared->name, leat_pipeline_text(pipeline),
                          leat_pipeline_text(open->pipeline[0]));
    if (open->nupstream == 0 && !shared->is_open)
        return leat_error(LEAT_EINVAL, "share: \"%s\" is not open yet",
                          shared->name);
    shared->callers++;
    return LEAT_OK;
}

/*
 * What all callers have in common; the allocator is a caller's own. A cancel of
 * this caller's opening may have reached the reader, for good: it is not
 * theirs.
 */
static int open_reader(leat__shared_reader *shared, const leat_open *open)
{
    leat_open_options options = LEAT_OPEN_OPTIONS_INIT;
    options.seed = open->seed;
    options.phase = open->phase;
    options.max_memory = open->max_memory;
    options.threads = open->threads;
    int status =
        leat_pipeline_open_with(shared->pipeline, &options, &shared->reader);
    if (status)
        return status;
    if (leat__opening_is_cancelled()) {
        leat_reader_close(shared->reader);
        return leat_error(LEAT_ECANCELLED, "share: reading was cancelled");
    }
    shared->may_wait = leat__pipeline_may_block(shared->pipeline) ||
                       leat__reader_reads_once(shared->reader);
    return LEAT_OK;
}

/* Adds one to the list, under the lock, and opens it without. */
static int add(leat_workspace *workspace, const leat_open *open,
               const char *name, leat__shared_reader **out)
{
    leat__shared_reader *shared = new_shared(open, name);
    if (!shared)
        return LEAT_ENOMEM;
    shared->workspace = workspace;
    shared->callers = 1;
    shared->next = workspace->first;
    workspace->first = shared;
    pthread_mutex_unlock(&lock);
    int status = open_reader(shared, open);
    pthread_mutex_lock(&lock);
    shared->is_open = !status;
    if (status)
        remove_shared(shared);
    pthread_cond_broadcast(&opened);
    if (status)
        destroy(shared);
    else
        *out = shared;
    return status;
}

/* Under the lock: waits for one that is being opened; it may fail. NULL: none
 * is there. */
static int find_opened(leat_workspace *workspace, const leat_open *open,
                       const char *name, const bool *is_cancelled,
                       leat__shared_reader **out)
{
    for (;;) {
        leat__shared_reader *shared = find(workspace, name, open->args);
        bool waits = shared && !shared->is_open && open->nupstream > 0 &&
                     is_same(shared->pipeline, open->pipeline[0]);
        *out = shared;
        if (!waits)
            return LEAT_OK;
        if (*is_cancelled)
            return leat_error(LEAT_ECANCELLED, "share: reading was cancelled");
        pthread_cond_wait(&opened, &lock);
    }
}

/* Of a wait, which is on another thread. */
static void cancel_wait(void *is_cancelled)
{
    pthread_mutex_lock(&lock);
    *(bool *)is_cancelled = true;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&lock);
}

/* Finds it, or opens it. */
static int join_or_add(leat_workspace *workspace, const leat_open *open,
                       const char *name, const bool *is_cancelled,
                       leat__shared_reader **out)
{
    leat__shared_reader *shared = NULL;
    pthread_mutex_lock(&lock);
    int status = find_opened(workspace, open, name, is_cancelled, &shared);
    if (!status && shared)
        status = join(shared, open);
    else if (!status && open->nupstream > 0)
        status = add(workspace, open, name, &shared);
    else if (!status)
        status =
            leat_error(LEAT_EINVAL, "share: no reader \"%s\" is open", name);
    pthread_mutex_unlock(&lock);
    if (!status)
        *out = shared;
    return status;
}

int leat__workspace_open(const leat_open *open, leat__shared_reader **out)
{
    const char *name = leat_args_get(open->args, "name");
    leat_workspace *workspace = (void *)(uintptr_t)leat_args_object(open->args);
    if (!workspace)
        workspace = &process_workspace;
    int status = leat__fork_watch();
    if (status)
        return status;
    leat__fork_call_in_child(forget_parent);
    leat__opening_step step;
    bool is_cancelled = false; /* guarded by lock */
    leat__opening_enter(&step, cancel_wait, &is_cancelled);
    status = join_or_add(workspace, open, name, &is_cancelled, out);
    leat__opening_leave(&step);
    return status;
}

/*
 * One caller more needs the reader no more, but is counted still, so that it is
 * there. The last one cancels it, whose calls may take for ever, if there are
 * more callers than `others`.
 */
static void need_no_more(leat__shared_reader *shared, int others)
{
    pthread_mutex_lock(&lock);
    bool ends = ++shared->unneeding == shared->callers &&
                shared->callers > others && !shared->is_ended;
    if (ends) {
        shared->is_ended = true;
        remove_shared(shared);
    }
    pthread_mutex_unlock(&lock);
    if (ends)
        leat_reader_cancel(shared->reader);
}

void leat__workspace_cancel(leat__shared_reader *shared)
{
    need_no_more(shared, 0);
}

/* A caller that closes it reads nothing: only another one's call is to end. */
void leat__workspace_close(leat__shared_reader *shared, bool is_cancelled)
{
    if (!is_cancelled)
        need_no_more(shared, 1);
    pthread_mutex_lock(&lock);
    shared->unneeding--;
    bool is_last = --shared->callers == 0;
    if (is_last && !shared->is_ended)
        remove_shared(shared);
    pthread_mutex_unlock(&lock);
    if (is_last)
        destroy(shared);
}
