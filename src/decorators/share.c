/*
 * share:NAME, one reader for several callers.
 *
 * DESIGN. A caller at a time calls the shared reader: it notes itself as
 * `caller` under the lock, and calls without it, so that the others wait on
 * `idle`, where their cancel wakes them. Samples that the reader defers are
 * completed by the caller that got them, in parallel: their depth in the chain
 * goes into the route, as they are file readers' samples in the caller's chain.
 *
 * A caller is in a pass of the shared reader once it has a sample of it. It has
 * LEAT_END when that one ends, or another caller has begun the next, until it
 * seeks to an epoch's beginning, and goes on with the pass that there is then;
 * or begins one, where the reader has failed.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "decorators/decorators.h"
#include "decorators/workspace.h"
#include "pipeline/pipeline.h"
#include "pipeline/reader_table.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct share_reader {
    leat_reader reader;
    leat__shared_reader *shared;
    int64_t pass;          /* of which it has samples; used by one caller */
    int64_t given;         /* its samples of that pass; likewise */
    atomic_bool cancelled; /* written under the shared lock */
} share_reader;

static share_reader *reader_of(leat_reader *reader)
{
    return (share_reader *)reader;
}

static int check_running(const share_reader *share)
{
    if (!atomic_load(&share->cancelled))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "share: reading was cancelled");
}

/* Waits until no other caller calls the shared reader. */
static int begin_call(share_reader *share)
{
    leat__shared_reader *shared = share->shared;
    int status = check_running(share);
    if (status)
        return status;
    pthread_mutex_lock(&shared->lock);
    int64_t begun = shared->caller ? leat__clock_now() : 0;
    while (shared->caller && !atomic_load(&share->cancelled))
        pthread_cond_wait(&shared->idle, &shared->lock);
    status = check_running(share);
    if (!status)
        shared->caller = share;
    pthread_mutex_unlock(&shared->lock);
    if (begun)
        leat_reader_add_blocked(&share->reader, leat__clock_now() - begun);
    return status;
}

static void end_call(share_reader *share)
{
    leat__shared_reader *shared = share->shared;
    pthread_mutex_lock(&shared->lock);
    shared->caller = NULL;
    pthread_mutex_unlock(&shared->lock);
    /* Not only one: it may be cancelled. */
    pthread_cond_broadcast(&shared->idle);
}

/* Begins the next pass for all, or this one again where it has not begun.
 * LEAT_EUNSUPPORTED: there is none. */
static int begin_pass(leat__shared_reader *shared)
{
    const leat_position to = {shared->pass + (shared->given > 0), 0};
    int status = leat_reader_seek(shared->reader, to, NULL);
    shared->has_failed |= status && status != LEAT_EUNSUPPORTED;
    if (status)
        return status;
    shared->has_failed = false;
    shared->pass = to.epoch;
    shared->given = 0;
    shared->has_ended = false;
    return LEAT_OK;
}

/* Leads to a pass that may have samples for this caller. */
static int find_pass(share_reader *share)
{
    leat__shared_reader *shared = share->shared;
    if (share->given > 0)
        return share->pass == shared->pass && !shared->has_ended ? LEAT_OK
                                                                 : LEAT_END;
    if (shared->has_ended) {
        int status = shared->given > 0 ? begin_pass(shared) : LEAT_END;
        if (status)
            return status == LEAT_EUNSUPPORTED ? LEAT_END : status;
    }
    share->pass = shared->pass;
    return LEAT_OK;
}

/* The work on them is left to this reader's materialize. */
static void defer(leat_sample *const out[], int n)
{
    for (int i = 0; i < n; i++) {
        if (out[i]->deferred == 0)
            continue;
        leat_sample_push_route(out[i], out[i]->deferred, LEAT__PIPELINE_DEPTHS);
        out[i]->deferred = 1;
    }
}

static int pull(share_reader *share, leat_sample *const out[], int n, int *got)
{
    leat__shared_reader *shared = share->shared;
    int status;
    do {
        status = find_pass(share);
        if (status)
            return status;
        status = leat_reader_pull(shared->reader, out, n, got);
        shared->has_ended = status == LEAT_END;
        shared->has_failed = status < 0 && status != LEAT_EDATA;
    } while (status == LEAT_END && share->given == 0);
    int taken = *got + (status == LEAT_EDATA);
    shared->given += taken;
    share->given += taken;
    return status;
}

static int share_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    share_reader *share = reader_of(reader);
    int status = begin_call(share);
    if (status)
        return status;
    status = pull(share, out, n, got);
    end_call(share);
    defer(out, *got);
    return status;
}

/* Samples after one that failed wait for another call. */
static int share_materialize(leat_reader *reader, leat_sample *const out[],
                             int n, int *got)
{
    share_reader *share = reader_of(reader);
    int own = n > 0 ? out[0]->deferred : 0;
    int status = check_running(share);
    if (status)
        return status;
    for (int i = 0; i < n; i++) {
        out[i]->deferred = (int)(out[i]->route % LEAT__PIPELINE_DEPTHS);
        out[i]->route /= LEAT__PIPELINE_DEPTHS;
    }
    status = leat_reader_materialize(share->shared->reader, out, n, got);
    for (int i = *got + 1; i < n; i++) {
        leat_sample_push_route(out[i], out[i]->deferred, LEAT__PIPELINE_DEPTHS);
        out[i]->deferred = own;
    }
    return status;
}

static int share_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    share_reader *share = reader_of(reader);
    int status = begin_call(share);
    if (status)
        return status;
    status = leat_reader_fields(share->shared->reader, out, n);
    end_call(share);
    return status;
}

static int share_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    share_reader *share = reader_of(reader);
    leat__shared_reader *shared = share->shared;
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED,
                          "share: what other callers read is not found again");
    int status = begin_call(share);
    if (status)
        return status;
    if ((share->given > 0 && share->pass == shared->pass) || shared->has_failed)
        status = begin_pass(shared);
    if (!status)
        share->given = 0;
    end_call(share);
    return status;
}

static void share_cancel(leat_reader *reader)
{
    share_reader *share = reader_of(reader);
    leat__shared_reader *shared = share->shared;
    pthread_mutex_lock(&shared->lock);
    bool is_first = !atomic_exchange(&share->cancelled, true);
    bool calls = shared->caller == share;
    pthread_cond_broadcast(&shared->idle);
    pthread_mutex_unlock(&shared->lock);
    if (calls && shared->may_wait)
        leat_reader_cancel(shared->reader);
    if (is_first)
        leat__workspace_cancel(shared);
}

static void share_close(leat_reader *reader)
{
    share_reader *share = reader_of(reader);
    leat__workspace_close(share->shared, atomic_load(&share->cancelled));
    leat__free(reader);
}

static int share_save(leat_reader *reader, leat_token *token)
{
    (void)reader;
    (void)token;
    return leat_error(LEAT_ESTATE,
                      "share: which caller gets a sample depends on when it "
                      "asks: no run can be resumed");
}

static int share_may_block(leat_reader *reader)
{
    return leat_reader_may_block(reader_of(reader)->shared->reader);
}

static int share_check(leat_reader *reader)
{
    return leat_reader_check(reader_of(reader)->shared->reader);
}

static int share_is_endless(leat_reader *reader)
{
    return leat_reader_is_endless(reader_of(reader)->shared->reader);
}

static const leat_reader_ops share_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "share",
    .fields = share_fields,
    .next = share_next,
    .seek = share_seek,
    .cancel = share_cancel,
    .close = share_close,
    .materialize = share_materialize,
    .can_seek = leat__reader_no,
    .save = share_save,
    .restore = share_save,
    .may_block = share_may_block,
    .check = share_check,
    .is_endless = share_is_endless,
};

static int check_open(const leat_open *open)
{
    if (open->nupstream == 0 && !leat_args_has(open->args, "name"))
        return leat_error(LEAT_EINVAL,
                          "share: expected a reader before it, or the name of "
                          "one that is open");
    if (open->world_size > 1)
        return leat_error(LEAT_EINVAL,
                          "share: which caller gets a sample depends on when "
                          "it asks, so that %d ranks would not read each once",
                          open->world_size);
    if (open->allocator)
        return leat_error(LEAT_EINVAL,
                          "share: samples change hands between callers: "
                          "expected no allocator (host_allocator)");
    return LEAT_OK;
}

static int share_open(const leat_open *open, leat_reader **out)
{
    int status = check_open(open);
    if (status)
        return status;
    share_reader *share = leat__alloc_zero(1, sizeof(*share));
    if (!share)
        return LEAT_ENOMEM;
    share->reader.ops = &share_ops;
    status = leat__workspace_open(open, &share->shared);
    if (status) {
        leat__free(share);
        return status;
    }
    *out = &share->reader;
    return LEAT_OK;
}

static const leat_argument share_arguments[] = {
    {.name = "name",
     .kind = LEAT_ARGUMENT_TEXT,
     .positional = 1,
     .help = "by which other pipelines share the reader; those without one "
             "share it with themselves alone"},
    {0},
};

const leat_reader_type leat__share_type = {
    .size = sizeof(leat_reader_type),
    .name = "share",
    .help = "one reader for several callers",
    .arguments = share_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 0,
    .max_upstream = 1,
    .may_block = 1,
    .opens_upstream = 1,
    .open = share_open,
};

static void release(void *workspace)
{
    leat_workspace_unref(workspace);
}

int leat_pipeline_share(leat_pipeline **out, leat_pipeline *upstream,
                        const char *name, leat_workspace *workspace)
{
    char *text = NULL;
    if (!upstream && !name)
        return leat_error(LEAT_EINVAL,
                          "share: expected a pipeline, or the name of a reader "
                          "that is open");
    if (name) {
        size_t size = leat_args_escape(name, NULL, 0);
        text = leat__alloc(size);
        if (!text)
            return LEAT_ENOMEM;
        leat_args_escape(name, text, size);
    }
    if (workspace)
        leat_workspace_ref(workspace);
    int status = leat_pipeline_create(out, &leat__share_type, text, workspace,
                                      release, &upstream, upstream ? 1 : 0);
    leat__free(text);
    return status;
}
