#include "support/index_decorators.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Indices mapped in one call upstream. */
#define CHUNK 64

typedef struct index_decorator index_decorator;

/* Where the sample at a position comes from upstream. */
typedef int64_t index_map(const index_decorator *self, leat_position at);

struct index_decorator {
    leat_reader reader;
    leat_reader *upstream; /* owned */
    index_map *map;
    int64_t count;          /* ours */
    int64_t upstream_count; /* theirs */
    int64_t seed;
    int64_t skip;
    leat_position next; /* one caller at a time */
};

/* The multiplier of a permutation i -> i m + seed: prime to the count. */
static int64_t multiplier(int64_t count, int64_t seed)
{
    int64_t m = 2 * (seed % 1000) + 3;
    for (;; m++) {
        int64_t a = m;
        int64_t b = count;
        while (b > 0) {
            int64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return m;
    }
}

int64_t index_decorators_shuffled(int64_t index, int64_t count, int64_t seed)
{
    return (index * multiplier(count, seed) + seed) % count;
}

int64_t index_decorators_turned(leat_position at, int64_t count, int64_t seed)
{
    return index_decorators_shuffled(at.index, count,
                                     seed + 3 * (at.epoch % 1000));
}

static int64_t map_shuffled(const index_decorator *self, leat_position at)
{
    return index_decorators_shuffled(at.index, self->count, self->seed);
}

static int64_t map_slice(const index_decorator *self, leat_position at)
{
    return self->skip + at.index;
}

static int64_t map_turned(const index_decorator *self, leat_position at)
{
    return index_decorators_turned(at, self->count, self->seed);
}

static int64_t map_halves(const index_decorator *self, leat_position at)
{
    return at.epoch > 0 ? self->count + at.index : at.index;
}

static int decorator_fields(leat_reader *reader, const leat_field_spec **out,
                            int *n)
{
    return leat_reader_fields(((index_decorator *)reader)->upstream, out, n);
}

static int decorator_read_at(leat_reader *reader, const leat_position at[],
                             leat_sample *const out[], int n, int *got)
{
    const index_decorator *self = (const index_decorator *)reader;
    leat_position mapped[CHUNK];
    int most = n < CHUNK ? n : CHUNK;
    for (int i = 0; i < most; i++)
        mapped[i] = (leat_position){at[i].epoch, self->map(self, at[i])};
    return leat_reader_pull_at(self->upstream, mapped, out, most, got);
}

static int decorator_next(leat_reader *reader, leat_sample *const out[], int n,
                          int *got)
{
    index_decorator *self = (index_decorator *)reader;
    leat_position at[CHUNK];
    int most = 0;
    while (most < n && most < CHUNK && self->next.index + most < self->count) {
        at[most] = (leat_position){self->next.epoch, self->next.index + most};
        most++;
    }
    /* At the end nothing is read, but a cancelled reader still says so. */
    if (most == 0)
        return LEAT_END;
    int status = decorator_read_at(reader, at, out, most, got);
    self->next.index += *got + (status == LEAT_EDATA);
    return status;
}

static void decorator_cancel(leat_reader *reader)
{
    leat_reader_cancel(((index_decorator *)reader)->upstream);
}

static void decorator_close(leat_reader *reader)
{
    leat_reader_close(((index_decorator *)reader)->upstream);
    free(reader);
}

static int decorator_count(leat_reader *reader, int64_t *out)
{
    *out = ((index_decorator *)reader)->count;
    return LEAT_OK;
}

static int decorator_seek(leat_reader *reader, leat_position position,
                          leat_token *mark)
{
    index_decorator *self = (index_decorator *)reader;
    (void)mark;
    if (position.index > self->count)
        return leat_error(LEAT_EINVAL, "sample %lld of %lld",
                          (long long)position.index, (long long)self->count);
    self->next = position;
    return LEAT_OK;
}

static int decorator_save(leat_reader *reader, leat_token *token)
{
    return leat_reader_save(((index_decorator *)reader)->upstream, token);
}

static int decorator_restore(leat_reader *reader, leat_token *token)
{
    index_decorator *self = (index_decorator *)reader;
    int status = leat_reader_restore(self->upstream, token);
    if (status == LEAT_OK)
        self->next = (leat_position){0, 0};
    return status;
}

static atomic_llong advised;

int64_t index_decorators_advised(void)
{
    return atomic_load(&advised);
}

static int decorator_may_block(leat_reader *reader)
{
    return leat_reader_may_block(((index_decorator *)reader)->upstream);
}

static void decorator_advise(leat_reader *reader, const leat_position at[],
                             int n)
{
    const index_decorator *self = (const index_decorator *)reader;
    leat_position mapped[CHUNK];
    atomic_fetch_add(&advised, n);
    for (int done = 0; done < n;) {
        int most = 0;
        for (; most < CHUNK && done < n; most++, done++)
            mapped[most] =
                (leat_position){at[done].epoch, self->map(self, at[done])};
        leat_reader_advise(self->upstream, mapped, most);
    }
}

static const leat_reader_ops decorator_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "index decorator",
    .fields = decorator_fields,
    .next = decorator_next,
    .seek = decorator_seek,
    .cancel = decorator_cancel,
    .close = decorator_close,
    .count = decorator_count,
    .read_at = decorator_read_at,
    .save = decorator_save,
    .restore = decorator_restore,
    .may_block = decorator_may_block,
    .advise = decorator_advise,
};

static int decorator_open(index_map *map, leat_reader *upstream,
                          index_decorator **out)
{
    if (!leat_reader_is_random_access(upstream))
        return leat_error(LEAT_EUNSUPPORTED,
                          "what stands before it cannot be read in any order");
    index_decorator *self = calloc(1, sizeof(*self));
    if (!self)
        return leat_error(LEAT_ENOMEM, "no memory for a decorator");
    self->reader.ops = &decorator_ops;
    self->map = map;
    self->upstream = upstream;
    int status = leat_reader_count(upstream, &self->upstream_count);
    if (status) {
        free(self);
        return status;
    }
    self->count = self->upstream_count;
    *out = self;
    return LEAT_OK;
}

static int open_seeded(index_map *map, const leat_open *open, leat_reader **out)
{
    index_decorator *self;
    int status = decorator_open(map, open->upstream[0], &self);
    if (status)
        return status;
    self->seed = leat_args_number(open->args, "seed");
    *out = &self->reader;
    return LEAT_OK;
}

static int shuffle_open(const leat_open *open, leat_reader **out)
{
    return open_seeded(map_shuffled, open, out);
}

static int turn_open(const leat_open *open, leat_reader **out)
{
    return open_seeded(map_turned, open, out);
}

static int slice_open(const leat_open *open, leat_reader **out)
{
    index_decorator *self;
    int64_t skip = leat_args_number(open->args, "skip");
    int64_t take = leat_args_number(open->args, "take");
    int status = decorator_open(map_slice, open->upstream[0], &self);
    if (status)
        return status;
    self->skip = skip < self->upstream_count ? skip : self->upstream_count;
    self->count = self->upstream_count - self->skip;
    if (self->count > take)
        self->count = take;
    *out = &self->reader;
    return LEAT_OK;
}

static int halves_open(const leat_open *open, leat_reader **out)
{
    index_decorator *self;
    int status = decorator_open(map_halves, open->upstream[0], &self);
    if (status)
        return status;
    self->count = self->upstream_count / 2;
    *out = &self->reader;
    return LEAT_OK;
}

static const leat_argument shuffle_arguments[] = {
    {.name = "seed",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = INT32_MAX},
    {0},
};

static const leat_argument slice_arguments[] = {
    {.name = "skip",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "0",
     .max = INT64_MAX},
    {.name = "take",
     .kind = LEAT_ARGUMENT_NUMBER,
     .initial = "9223372036854775807",
     .max = INT64_MAX},
    {0},
};

static const leat_reader_type shuffle_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_shuffle",
    .arguments = shuffle_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = shuffle_open,
};

static const leat_reader_type turn_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_turn",
    .arguments = shuffle_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = turn_open,
};

static const leat_reader_type slice_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_slice",
    .arguments = slice_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .open = slice_open,
};

static const leat_reader_type halves_type = {
    .size = sizeof(leat_reader_type),
    .name = "test_halves",
    .min_upstream = 1,
    .max_upstream = 1,
    .open = halves_open,
};

const leat_reader_type *index_decorators_shuffle(void)
{
    return &shuffle_type;
}

const leat_reader_type *index_decorators_slice(void)
{
    return &slice_type;
}

const leat_reader_type *index_decorators_turn(void)
{
    return &turn_type;
}

const leat_reader_type *index_decorators_halves(void)
{
    return &halves_type;
}

static void register_once(void)
{
    if (leat_reader_register(&shuffle_type) ||
        leat_reader_register(&turn_type) || leat_reader_register(&slice_type) ||
        leat_reader_register(&halves_type))
        abort();
}

void index_decorators_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_once);
}
