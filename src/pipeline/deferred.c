/*
 * Deferred samples: the work that next left to other threads.
 *
 * `deferred` is the depth of the deepest reader whose work on the sample is
 * still to be done, 0 if there is none. A reader that has done its own leaves
 * the sample to the one above.
 */
#include "base/error.h"
#include "data/sample.h"
#include "pipeline/reader_chain.h"
#include "pipeline/reader_state.h"

static bool is_map(const leat_reader *reader)
{
    return reader->state->upstream && LEAT__HAS(reader, materialize);
}

/* The reader's own work on samples for which no deeper reader has any. */
static int do_own(leat_reader *reader, leat_sample *const out[], int n,
                  int *got)
{
    int status = LEAT_OK;
    *got = n;
    if (LEAT__HAS(reader, materialize)) {
        unsigned lines = leat__error_lines();
        *got = 0;
        status = reader->ops->materialize(reader, out, n, got);
        status = leat__reader_refuse_end(reader, "materialize", status);
        status = leat__reader_check_count(reader, "materialize", lines, status,
                                          out, n, got);
    } else if (!reader->state->upstream) {
        *got = 0;
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\" deferred a sample, but lacks "
                          "\"materialize\"",
                          reader->ops->name);
    }
    bool is_bad = false;
    for (int i = 0; i < *got; i++) {
        out[i]->deferred = reader->state->depth - 1;
        is_bad |= (unsigned)out[i]->nfields - 1 >= LEAT_MAX_FIELDS;
    }
    return is_bad ? leat__reader_bad_sample(reader, out, got) : status;
}

static int complete_pending(leat_reader *reader, leat_sample *const out[],
                            int n, int *got);

/* do_own until all are done, or one is bad. */
static int do_all(leat_reader *reader, leat_sample *const out[], int n,
                  int *got)
{
    int status = LEAT_OK;
    for (*got = 0; !status && *got < n;) {
        int done;
        status = do_own(reader, out + *got, n - *got, &done);
        *got += done;
    }
    return status;
}

/* The work of the reader, and of those that it reads, on deferred samples. */
static int complete(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    leat_reader *upstream = reader->state->upstream;
    leat__reader_call call;
    char line[LEAT__ERROR_MAX];
    int ready = n;
    int upstream_status = LEAT_OK;
    if (upstream)
        upstream_status = complete_pending(upstream, out, n, &ready);
    if (upstream_status)
        leat__error_save(line);
    leat__reader_call_begin(&call, reader);
    int status = do_all(reader, out, ready, got);
    leat__reader_call_end(&call);
    if (call.figures)
        leat__reader_count_completed(call.figures, out, *got);
    if (!upstream_status)
        return status;
    if (!status)
        return leat_error(upstream_status, "%s", line);
    /* The caller goes on after one that comes before it. */
    leat__sample_refuse(out[ready], upstream_status, line);
    return status;
}

/* Whether the reader's work on the sample is to be done. */
static bool is_pending(const leat_sample *sample, int depth)
{
    return sample->deferred >= depth && !leat__sample_is_refused(sample);
}

/* The first sample from `at` on that differs in this, or was refused. */
static int find_end(leat_sample *const out[], int at, int n, int depth)
{
    if (is_pending(out[at], depth))
        while (at < n && is_pending(out[at], depth))
            at++;
    else
        while (at < n && out[at]->deferred < depth &&
               !leat__sample_is_refused(out[at]))
            at++;
    return at;
}

/* The same, where only some of the samples are deferred as deep as that. */
static int complete_pending(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    int depth = reader->state->depth;
    int status = LEAT_OK;
    for (*got = 0; !status && *got < n;) {
        leat_sample *const *rest = out + *got;
        if (leat__sample_is_refused(rest[0]))
            return leat__sample_refusal(rest[0]);
        int deferred, done = find_end(out, *got, n, depth) - *got;
        if (rest[0]->deferred >= depth)
            status = complete(reader, rest, done, &done);
        else
            status = leat__reader_check_samples(reader, LEAT_OK, rest, &done,
                                                &deferred);
        *got += done;
    }
    return status;
}

int leat_reader_materialize(leat_reader *reader, leat_sample *const out[],
                            int n, int *got)
{
    *got = 0;
    int status = leat__reader_check_process(reader);
    if (!status)
        status = complete_pending(reader, out, n, got);
    /* As far as this reader, they are complete. */
    for (int i = 0; i < *got && reader->state->depth > 1; i++)
        out[i]->deferred = 0;
    return status;
}

void leat_sample_push_route(leat_sample *sample, int i, int n)
{
    sample->route = sample->route * (uint64_t)n + (uint64_t)i;
}

int leat_reader_materialize_routed(leat_reader *const upstream[], int nupstream,
                                   leat_sample *const out[], int n, int *got)
{
    uint64_t base = (uint64_t)nupstream;
    int status = LEAT_OK;
    for (*got = 0; !status && *got < n;) {
        uint64_t i = out[*got]->route % base;
        int end = *got, done;
        for (; end < n && out[end]->route % base == i; end++)
            out[end]->route /= base;
        int first = *got;
        status = leat_reader_materialize(upstream[i], out + first, end - first,
                                         &done);
        *got += done;
        /* What comes after an error is still to be done. */
        for (int k = first + done; k < end; k++)
            leat_sample_push_route(out[k], (int)i, nupstream);
    }
    return status;
}

/* A file reader says by 1 that it has work to do, a map has on all samples. */
void leat__reader_set_depths(const leat_reader *reader,
                             leat_sample *const out[], int n)
{
    const struct leat_reader_state *state = reader->state;
    int least = is_map(reader) ? state->depth : 0;
    bool is_file = !state->upstream && state->depth > 1;
    if (!is_file && least == 0)
        return; /* they are passed on as they are */
    for (int i = 0; i < n; i++) {
        if (is_file && out[i]->deferred == 1)
            out[i]->deferred = state->depth;
        if (out[i]->deferred < least)
            out[i]->deferred = least;
    }
}

int leat__reader_map(leat_reader *reader, leat_sample *const out[], int status,
                     int *got)
{
    if (!is_map(reader))
        return status;
    int own = do_all(reader, out, *got, got);
    for (int i = 0; i < *got; i++)
        out[i]->deferred = 0;
    return own ? own : status;
}
