/* Random calls of two readers of one chain, and of one without memory. */
#include "walk.h"

#include "base/memory.h"
#include "soak/dice.h"

#include <leat/ext/reader.h>

#include <pthread.h>
#include <string.h>

enum { AT_ONCE = 9, MARKS = 8, CALLS = 40 };

typedef struct walk {
    const model *model;
    leat_reader *reader;
    int64_t epoch, index; /* of what comes next */
    bool has_ended;       /* it was told its end */
} walk;

typedef struct kept_mark {
    leat_token token;
    int64_t epoch, index;
} kept_mark;

static leat_sample buffers[AT_ONCE], *out[AT_ONCE];
static kept_mark marks[MARKS];
static int nmarks;

static const epoch_seen *here(const walk *self)
{
    return &self->model->epoch[self->epoch];
}

/* What is left in the epoch, as far as it is known. */
static int64_t left(const walk *self)
{
    return here(self)->n - self->index;
}

static void expect_end(walk *self, int status, const char *way)
{
    chain_require(self->index == here(self)->n && status == here(self)->status,
                  "%s: epoch %d ends with %d after %d of %d: %s", way,
                  (int)self->epoch, status, (int)self->index, here(self)->n,
                  leat_last_error());
    self->has_ended = true;
}

static void call_next(walk *self, int n)
{
    int got;
    if (here(self)->status == LEAT_OK && n > left(self))
        n = (int)left(self);
    if (n < 1)
        return;
    int status = leat_reader_next_batch(self->reader, out, n, &got);
    for (int i = 0; i < got + (status == LEAT_EDATA); i++) {
        seen one = model_see(out[i], i < got ? LEAT_OK : status);
        model_compare(self->model, &one, self->epoch, self->index++, "next");
    }
    if (model_is_end(status))
        expect_end(self, status, "next");
}

static void call_read(walk *self, leat_blob *const blobs[], int n)
{
    uint32_t digest = 0;
    if (left(self) < 1)
        return;
    int status = leat_read(self->reader, blobs, n);
    chain_require(!model_is_end(status), "read: %s", leat_last_error());
    const seen *expected = &here(self)->at[self->index++];
    const leat_field_spec *fields;
    (void)leat_reader_fields(self->reader, &fields, &n);
    for (int i = 0; i < n && !status; i++)
        digest = digest_field(
            digest, fields[i].ndim ? leat_blob_ndim(blobs[i]) : 0,
            leat_blob_shape(blobs[i]), leat_blob_cpu_data(blobs[i]),
            leat_blob_bytes(blobs[i]));
    chain_require(expected->is_bad == (status == LEAT_EDATA) &&
                      (status || digest == expected->digest),
                  "read: sample %d of epoch %d differs", (int)self->index - 1,
                  (int)self->epoch);
}

static void call_skip(walk *self, int64_t n)
{
    int64_t skipped = -1;
    if (here(self)->status == LEAT_OK && n > left(self))
        n = left(self);
    int status = leat_reader_skip(self->reader, n, &skipped);
    chain_require(skipped >= 0 && skipped <= n && skipped <= left(self),
                  "skip of %d: %d skipped, %d left: %d, %s", (int)n,
                  (int)skipped, (int)left(self), status, leat_last_error());
    self->index += skipped;
    if (status)
        expect_end(self, status, "skip");
    else
        chain_require(skipped == n, "skip of %d: %d", (int)n, (int)skipped);
}

static void call_seek(walk *self)
{
    self->epoch = below(EPOCHS);
    self->index = once_in(3) ? 0 : below(here(self)->n + 1);
    self->has_ended = false;
    model_go_to(self->reader, self->epoch, self->index);
}

static void call_mark(walk *self)
{
    kept_mark *mark = &marks[nmarks % MARKS];
    leat_token token;
    if (self->has_ended)
        return;
    leat_token_init(&token);
    int status = leat_reader_mark(self->reader, &token);
    if (status == LEAT_ESTATE) {
        leat_token_finish(&token);
        return; /* good samples are still to be returned */
    }
    chain_require(!status, "mark: %s", leat_last_error());
    leat_token_finish(&mark->token);
    mark->token = token;
    mark->epoch = self->epoch;
    mark->index = self->index;
    nmarks++;
}

static void call_seek_mark(walk *self)
{
    if (nmarks == 0)
        return;
    kept_mark *mark = &marks[below(nmarks < MARKS ? nmarks : MARKS)];
    mark->token.cursor = 0;
    self->epoch = mark->epoch;
    self->index = mark->index;
    self->has_ended = false;
    int status = leat_reader_seek(
        self->reader, (leat_position){self->epoch, self->index}, &mark->token);
    chain_require((!status || (status == LEAT_END && left(self) == 0)) &&
                      mark->token.cursor == mark->token.size,
                  "seek to a mark at %d, %d: %d, %s", (int)self->epoch,
                  (int)self->index, status, leat_last_error());
}

/* Of samples and statuses of its own, as other threads call it, too. */
static void read_at(const model *from, leat_reader *reader,
                    const leat_position at[], int n)
{
    leat_sample own[AT_ONCE], *to[AT_ONCE];
    int got;
    for (int i = 0; i < n; i++) {
        leat_sample_init(&own[i]);
        to[i] = &own[i];
    }
    for (int done = 0; done < n; done += got + 1) {
        int status =
            leat_reader_read_at(reader, at + done, to + done, n - done, &got);
        chain_require(!model_is_end(status), "read_at: %s", leat_last_error());
        for (int i = done; i < done + got + (status != LEAT_OK); i++) {
            seen one = model_see(to[i], i < done + got ? LEAT_OK : status);
            model_compare(from, &one, at[i].epoch, at[i].index, "read_at");
        }
        got -= status == LEAT_OK;
    }
    for (int i = 0; i < n; i++)
        leat_sample_finish(&own[i]);
}

static int choose_positions(const model *from, leat_position at[])
{
    int n = between(1, AT_ONCE);
    for (int i = 0; i < n; i++) {
        at[i].epoch = below(EPOCHS);
        if (from->epoch[at[i].epoch].n == 0)
            return 0;
        at[i].index = below(from->epoch[at[i].epoch].n);
    }
    return n;
}

static void call_read_at(walk *self)
{
    leat_position at[AT_ONCE];
    int n = choose_positions(self->model, at);
    if (!leat_reader_is_random_access(self->reader) || n == 0)
        return;
    if (once_in(3))
        leat_reader_advise(self->reader, at, n);
    read_at(self->model, self->reader, at, n);
}

static void call_any(walk *self, leat_blob *const blobs[], int nblobs)
{
    switch (below(9)) {
    case 0:
        call_seek(self);
        break;
    case 1:
        call_skip(self, below(9));
        break;
    case 2:
        call_mark(self);
        break;
    case 3:
        call_seek_mark(self);
        break;
    case 4:
        call_read_at(self);
        break;
    case 5:
        call_read(self, blobs, nblobs);
        break;
    default:
        call_next(self, between(1, AT_ONCE));
    }
}

static void check_count(const walk *self)
{
    int64_t count;
    int status = leat_reader_count(self->reader, &count);
    if (status) {
        chain_require(status == LEAT_EUNSUPPORTED &&
                          !leat_reader_is_random_access(self->reader),
                      "count: %d, %s", status, leat_last_error());
        return;
    }
    for (int e = 0; e < EPOCHS; e++) {
        const epoch_seen *all = &self->model->epoch[e];
        chain_require(
            all->status == LEAT_END ? count == all->n : count >= all->n,
            "count is %lld, epoch %d has %d", (long long)count, e, all->n);
    }
}

/* Reads by index beside the walk. */
typedef struct companion {
    const model *model;
    leat_reader *reader;
    leat_position at[4][AT_ONCE];
    int n[4];
} companion;

static void *accompany(void *argument)
{
    const companion *self = argument;
    for (int i = 0; i < 4; i++)
        if (self->n[i] > 0)
            read_at(self->model, self->reader, self->at[i], self->n[i]);
    return NULL;
}

static void begin(void)
{
    for (int i = 0; i < AT_ONCE; i++) {
        leat_sample_init(&buffers[i]);
        out[i] = &buffers[i];
    }
    for (int i = 0; i < MARKS; i++)
        leat_token_init(&marks[i].token);
    nmarks = 0;
}

static void end(void)
{
    for (int i = 0; i < AT_ONCE; i++)
        leat_sample_finish(&buffers[i]);
    for (int i = 0; i < MARKS; i++)
        leat_token_finish(&marks[i].token);
}

void walk_run(const model *from, trial_tally *tally)
{
    const leat_field_spec *fields;
    leat_blob *blobs[LEAT_MAX_FIELDS];
    pthread_t thread;
    int n;
    begin();
    walk two[2] = {{.model = from, .reader = model_open(from)},
                   {.model = from, .reader = model_open(from)}};
    int status = leat_reader_fields(two[0].reader, &fields, &n);
    chain_require(!status, "fields: %s", leat_last_error());
    for (int i = 0; i < n; i++)
        chain_require(!leat_blob_create(&blobs[i], NULL), "a blob");
    companion beside = {.model = from, .reader = two[0].reader};
    for (int i = 0; i < 4; i++)
        beside.n[i] = choose_positions(from, beside.at[i]);
    bool has_company =
        leat_reader_is_random_access(two[0].reader) && once_in(3);
    if (has_company)
        pthread_create(&thread, NULL, accompany, &beside);
    check_count(&two[0]);
    for (int i = 0; i < CALLS; i++)
        call_any(&two[below(2)], blobs, n);
    if (has_company)
        pthread_join(thread, NULL);
    tally->random_access += leat_reader_is_random_access(two[0].reader);
    tally->marks += nmarks;
    for (int i = 0; i < n; i++)
        leat_blob_destroy(blobs[i]);
    if (once_in(3))
        leat_reader_cancel(two[1].reader);
    for (int i = 0; i < 2; i++)
        leat_reader_close(two[i].reader);
    end();
}

void walk_without_memory(const model *from, trial_tally *tally)
{
    begin();
    for (int k = 0; k < 6; k++) {
        walk self = {.model = from};
        int64_t n = below(k < 3 ? 30 : 200);
        leat__alloc_fail_at(n);
        int64_t last = leat__alloc_count() + n;
        int status = leat_pipeline_open_with(from->pipeline, &from->options,
                                             &self.reader);
        for (int i = 0; i < 12 && !model_is_end(status); i++) {
            int got;
            status = leat_reader_next_batch(self.reader, out, 3, &got);
        }
        leat__alloc_fail_at(-1);
        chain_require(!model_is_end(status) || status == LEAT_ENOMEM ||
                          status == from->epoch[0].status,
                      "without memory: %d, %s", status, leat_last_error());
        tally->faults += leat__alloc_count() > last;
        if (self.reader) {
            model_go_to(self.reader, 0, 0);
            for (int i = 0; i < 4; i++)
                call_next(&self, 3);
        }
        leat_reader_close(self.reader);
    }
    end();
}
