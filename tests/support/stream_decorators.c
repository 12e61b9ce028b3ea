#include "support/stream_decorators.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UPSTREAM_MAX = 4 };

/* No mark has taken more samples upstream: their count stays in int64_t. */
#define AT_MAX (INT64_MAX / 2)

typedef struct stream_decorator {
    leat_reader reader;
    leat_reader *upstream[UPSTREAM_MAX]; /* owned */
    int nupstream;
    int64_t at;    /* upstream samples taken in this epoch */
    int64_t epoch; /* all of one caller at a time */
    /* ROTATE: the samples of a window, where it begins, and how many of it were
       given. */
    leat_sample window[STREAM_WINDOW];
    int is_bad[STREAM_WINDOW];
    int nwindow, given;
    leat_token begin;
    leat_field_spec spec[LEAT_MAX_FIELDS]; /* ZIP */
    atomic_int cancelled;
} stream_decorator;

int64_t stream_decorators_filtered(int64_t index)
{
    return index / 2 * 3 + index % 2 * 2;
}

int64_t stream_decorators_left(int64_t count)
{
    return count - (count + 1) / 3;
}

/* Slot `i` of a window of `n` samples gives this one of them. */
static int rotated(int64_t epoch, int64_t window, int i, int n)
{
    return (int)((i + epoch + window) % n);
}

int64_t stream_decorators_rotated(leat_position at, int64_t count)
{
    int64_t window = at.index / STREAM_WINDOW;
    int64_t left = count - window * STREAM_WINDOW;
    int n = left < STREAM_WINDOW ? (int)left : STREAM_WINDOW;
    return window * STREAM_WINDOW +
           rotated(at.epoch, window, (int)(at.index % STREAM_WINDOW), n);
}

static int stream_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    return leat_reader_fields(((stream_decorator *)reader)->upstream[0], out,
                              n);
}

static int is_dropped(int64_t at)
{
    return at % 3 == 1;
}

static int filter_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    stream_decorator *self = (stream_decorator *)reader;
    int status = LEAT_OK;
    while (!status && *got < n) {
        int pulled, first = *got;
        status = leat_reader_pull(self->upstream[0], out + first, n - first,
                                  &pulled);
        for (int i = first; i < first + pulled; i++) {
            if (is_dropped(self->at++))
                leat_sample_clear(out[i]);
            else if (i != (*got)++)
                leat_sample_swap(out[*got - 1], out[i]);
        }
        if (status != LEAT_EDATA)
            continue;
        int at = first + pulled;
        if (is_dropped(self->at++))
            status = LEAT_OK;
        else if (at == *got)
            break;
        else
            leat_sample_swap(out[*got], out[at]);
        leat_sample_clear(out[at]);
    }
    return status;
}

/* Takes the next window, and notes where it begins. */
static int refill(stream_decorator *self)
{
    self->begin.size = 0;
    int status = leat_reader_mark(self->upstream[0], &self->begin);
    self->nwindow = self->given = 0;
    while (!status && self->nwindow < STREAM_WINDOW) {
        leat_sample *into[STREAM_WINDOW];
        int n = 0, got;
        for (int i = self->nwindow; i < STREAM_WINDOW; i++) {
            leat_sample_clear(into[n++] = &self->window[i]);
            self->is_bad[i] = 0;
        }
        status = leat_reader_pull(self->upstream[0], into, n, &got);
        self->nwindow += got;
        if (status == LEAT_EDATA) {
            self->is_bad[self->nwindow++] = 1;
            status = LEAT_OK;
        }
    }
    return status == LEAT_END && self->nwindow > 0 ? LEAT_OK : status;
}

static int rotate_next(leat_reader *reader, leat_sample *const out[], int n,
                       int *got)
{
    stream_decorator *self = (stream_decorator *)reader;
    while (*got < n) {
        /* What is in the window is not the upstream's to refuse. */
        if (atomic_load(&self->cancelled))
            return leat_error(LEAT_ECANCELLED, "rotate: cancelled");
        if (self->given == self->nwindow) {
            self->at += self->nwindow;
            int status = refill(self);
            if (status)
                return status;
        }
        int from = rotated(self->epoch, self->at / STREAM_WINDOW, self->given,
                           self->nwindow);
        self->given++;
        int status = leat_sample_move(out[*got], &self->window[from]);
        if (status)
            return status;
        if (self->is_bad[from])
            return leat_error(LEAT_EDATA, "rotate: record %lld is bad",
                              (long long)out[*got]->from.record);
        ++*got;
    }
    return LEAT_OK;
}

static int end_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    stream_decorator *self = (stream_decorator *)reader;
    int64_t left = STREAM_ONCE - self->at;
    if (left == 0)
        return LEAT_END;
    int status =
        leat_reader_pull(self->upstream[0], out, n < left ? n : (int)left, got);
    self->at += *got + (status == LEAT_EDATA);
    return status;
}

/* One after the other; a bad record of one takes its neighbors along. */
static int zip_one(stream_decorator *self, leat_sample *sample)
{
    int worst = LEAT_OK;
    for (int i = 0; i < self->nupstream; i++) {
        int got;
        int status = leat_reader_pull(self->upstream[i], &sample, 1, &got);
        if (!status)
            status =
                leat_reader_materialize(self->upstream[i], &sample, 1, &got);
        if (status && status != LEAT_EDATA)
            return status;
        sample->deferred = 0;
        worst = status ? status : worst;
    }
    return worst;
}

static int zip_next(leat_reader *reader, leat_sample *const out[], int n,
                    int *got)
{
    stream_decorator *self = (stream_decorator *)reader;
    int status = LEAT_OK;
    while (!status && *got < n) {
        status = zip_one(self, out[*got]);
        *got += !status;
    }
    return status;
}

static int zip_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    stream_decorator *self = (stream_decorator *)reader;
    *n = 0;
    for (int i = 0; i < self->nupstream; i++) {
        const leat_field_spec *spec;
        int more;
        int status = leat_reader_fields(self->upstream[i], &spec, &more);
        if (status)
            return status;
        for (int k = 0; k < more && *n < LEAT_MAX_FIELDS; k++)
            self->spec[(*n)++] = spec[k];
    }
    *out = self->spec;
    return LEAT_OK;
}

/* What a mark adds to those of the upstreams. */
static int take_mark(stream_decorator *self, leat_token *mark)
{
    int64_t state[2];
    int status = leat_token_get(mark, state, sizeof(state));
    if (status)
        return status;
    if (state[0] < 0 || state[0] > AT_MAX || state[1] < 0 ||
        state[1] > STREAM_WINDOW)
        return leat_error(LEAT_EINVAL, "the mark is none");
    self->at = state[0];
    status = state[1] > 0 ? refill(self) : LEAT_OK;
    if (!status && state[1] > self->nwindow)
        return leat_error(LEAT_EINVAL, "the mark is none");
    self->given = (int)state[1];
    return status;
}

static int stream_seek(leat_reader *reader, leat_position position,
                       leat_token *mark)
{
    stream_decorator *self = (stream_decorator *)reader;
    if (position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED, "no index finds it again");
    for (int i = 0; i < self->nupstream; i++) {
        const leat_position begin = {position.epoch, 0};
        int status = leat_reader_seek(self->upstream[i], begin, mark);
        if (status)
            return status;
    }
    self->epoch = position.epoch;
    self->at = 0;
    self->nwindow = self->given = 0;
    return mark ? take_mark(self, mark) : LEAT_OK;
}

static int end_seek(leat_reader *reader, leat_position position,
                    leat_token *mark)
{
    (void)reader;
    (void)position;
    (void)mark;
    return leat_error(LEAT_EUNSUPPORTED, "it ends by itself, once");
}

static int cannot_seek(leat_reader *reader)
{
    (void)reader;
    return 0;
}

static int stream_mark(leat_reader *reader, leat_token *token)
{
    stream_decorator *self = (stream_decorator *)reader;
    int status = LEAT_OK;
    int64_t state[2] = {self->at, 0};
    if (self->given < self->nwindow) {
        state[1] = self->given;
        status = leat_token_put(token, self->begin.bytes, self->begin.size);
    } else {
        state[0] += self->nwindow;
        for (int i = 0; i < self->nupstream && !status; i++)
            status = leat_reader_mark(self->upstream[i], token);
    }
    return status ? status : leat_token_put(token, state, sizeof(state));
}

static int stream_save(leat_reader *reader, leat_token *token)
{
    stream_decorator *self = (stream_decorator *)reader;
    int status = LEAT_OK;
    for (int i = 0; i < self->nupstream && !status; i++)
        status = leat_reader_save(self->upstream[i], token);
    return status;
}

static int stream_restore(leat_reader *reader, leat_token *token)
{
    stream_decorator *self = (stream_decorator *)reader;
    int status = LEAT_OK;
    for (int i = 0; i < self->nupstream && !status; i++)
        status = leat_reader_restore(self->upstream[i], token);
    if (!status) {
        self->epoch = self->at = 0;
        self->nwindow = self->given = 0;
    }
    return status;
}

static void stream_cancel(leat_reader *reader)
{
    stream_decorator *self = (stream_decorator *)reader;
    atomic_store(&self->cancelled, 1);
    for (int i = 0; i < self->nupstream; i++)
        leat_reader_cancel(self->upstream[i]);
}

static void stream_close(leat_reader *reader)
{
    stream_decorator *self = (stream_decorator *)reader;
    for (int i = 0; i < self->nupstream; i++)
        leat_reader_close(self->upstream[i]);
    for (int i = 0; i < STREAM_WINDOW; i++)
        leat_sample_finish(&self->window[i]);
    leat_token_finish(&self->begin);
    free(self);
}

static int stream_may_block(leat_reader *reader)
{
    return leat_reader_may_block(((stream_decorator *)reader)->upstream[0]);
}

#define STREAM_OPS                                                             \
    .size = sizeof(leat_reader_ops), .name = "stream",                         \
    .cancel = stream_cancel, .close = stream_close, .can_seek = cannot_seek,   \
    .save = stream_save, .restore = stream_restore,                            \
    .may_block = stream_may_block
#define STREAM_MARKS .seek = stream_seek, .mark = stream_mark

static const leat_reader_ops ops[STREAM_KINDS] = {
    [STREAM_FILTER] = {STREAM_OPS, STREAM_MARKS, .fields = stream_fields,
                       .next = filter_next},
    [STREAM_ROTATE] = {STREAM_OPS, STREAM_MARKS, .fields = stream_fields,
                       .next = rotate_next},
    [STREAM_END] = {STREAM_OPS, .seek = end_seek, .fields = stream_fields,
                    .next = end_next},
    [STREAM_ZIP] = {STREAM_OPS, STREAM_MARKS, .fields = zip_fields,
                    .next = zip_next},
};

static int open_kind(stream_kind kind, leat_reader *const upstream[], int n,
                     leat_reader **out)
{
    stream_decorator *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a reader");
    self->reader.ops = &ops[kind];
    self->nupstream = n;
    memcpy(self->upstream, upstream, (size_t)n * sizeof(upstream[0]));
    leat_token_init(&self->begin);
    for (int i = 0; i < STREAM_WINDOW; i++)
        leat_sample_init(&self->window[i]);
    *out = &self->reader;
    return LEAT_OK;
}

#define OPEN(name, kind)                                                       \
    static int open_##name(const leat_open *open, leat_reader **out)           \
    {                                                                          \
        return open_kind(kind, open->upstream, open->nupstream, out);          \
    }
OPEN(filter, STREAM_FILTER)
OPEN(rotate, STREAM_ROTATE)
OPEN(end, STREAM_END)
OPEN(zip, STREAM_ZIP)

#define TYPE(text, most)                                                       \
    {                                                                          \
        .size = sizeof(leat_reader_type), .name = "test_" #text,               \
        .min_upstream = 1, .max_upstream = (most), .open = open_##text         \
    }

static const leat_reader_type types[STREAM_KINDS] = {
    [STREAM_FILTER] = TYPE(filter, 1),
    [STREAM_ROTATE] = TYPE(rotate, 1),
    [STREAM_END] = TYPE(end, 1),
    [STREAM_ZIP] = TYPE(zip, UPSTREAM_MAX),
};

leat_pipeline *stream_decorators_over(stream_kind kind,
                                      leat_pipeline *const upstream[], int n)
{
    leat_pipeline *pipeline;
    if (leat_pipeline_create(&pipeline, &types[kind], NULL, NULL, NULL,
                             upstream, n)) {
        fprintf(stderr, "%s\n", leat_last_error());
        abort();
    }
    return pipeline;
}

leat_pipeline *stream_decorators_take(stream_kind kind, leat_pipeline *upstream)
{
    leat_pipeline *pipeline = stream_decorators_over(kind, &upstream, 1);
    leat_pipeline_unref(upstream);
    return pipeline;
}
