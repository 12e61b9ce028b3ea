#include "ranks.h"

#include "soak/dice.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MAX = 4, BATCH_MAX = 4, LIVES = 4, TOKEN_MAX = 6000 };

/* Where the next life goes on. */
typedef struct progress {
    int64_t position; /* in the endless sequence */
    char token[TOKEN_MAX];
} progress;

typedef struct life {
    const model *model;
    leat_data_layer_options options; /* of rank 0 */
    int batches;
    int fd; /* gets the progress after each batch; -1: none */
    leat_data_layer *layer[RANKS_MAX];
} life;

static const leat_top tops[CHAIN_FIELDS][2] = {
    {{.size = sizeof(leat_top), .name = "line", .form = LEAT_TOP_RAGGED}},
    {{.size = sizeof(leat_top), .name = "label"},
     {.size = sizeof(leat_top), .name = "x"}},
    {{.size = sizeof(leat_top), .name = "value"}}};

/* Sample `p` of the endless sequence, where the model has it. */
static bool find(const model *from, int64_t p, leat_position *at)
{
    int e = 0;
    while (e < EPOCHS && from->epoch[e].status && p >= from->epoch[e].n)
        p -= from->epoch[e++].n;
    *at = (leat_position){e, p};
    return e < EPOCHS && p < from->epoch[e].n;
}

/* Where the epoch of `p` ends in that sequence. */
static int64_t end_of_epoch(const model *from, int64_t p)
{
    leat_position at;
    if (!find(from, p, &at) || !from->epoch[at.epoch].status)
        return INT64_MAX;
    return p - at.index + from->epoch[at.epoch].n;
}

/* The next batch of all ranks begins at *p. Returns where it ends. */
static int64_t next_batch(const life *self, int64_t *p)
{
    leat_epoch_end way = self->options.epoch_end;
    int64_t most = self->options.batch_size * self->options.world_size;
    int64_t end = end_of_epoch(self->model, *p);
    if (way == LEAT_EPOCH_END_WRAP || end >= *p + most)
        return *p + most;
    if (way != LEAT_EPOCH_END_DROP)
        return end;
    *p = end;
    return end + most;
}

/* The digest of row `i` of the tops, as of the sample that it was. */
static uint32_t see_row(leat_data_layer *layer, chain_fields fields, int64_t i)
{
    uint32_t digest = 0;
    leat_blob *top = leat_data_layer_top(layer, 0);
    if (fields == CHAIN_LINES) {
        const int64_t *offset =
            leat_blob_cpu_data(leat_data_layer_top(layer, 1));
        const char *line = leat_blob_cpu_data(top);
        const int64_t size = offset[i + 1] - offset[i];
        return digest_field(0, 1, &size, line + offset[i], (size_t)size);
    }
    for (int k = 0; k < leat_data_layer_top_count(layer); k++) {
        top = leat_data_layer_top(layer, k);
        size_t size = leat_blob_bytes(top) / (size_t)leat_blob_dim(top, 0);
        const char *rows = leat_blob_cpu_data(top);
        digest = digest_field(digest, leat_blob_ndim(top) - 1,
                              leat_blob_shape(top) + 1, rows + (size_t)i * size,
                              size);
    }
    return digest;
}

static void check_sample(const life *self, int rank, int64_t i, int64_t p)
{
    leat_position at;
    leat_data_layer *layer = self->layer[rank];
    const leat_batch *batch = leat_data_layer_batch(layer);
    const leat_provenance *from = &batch->from[i];
    chain_require(find(self->model, p, &at), "no sample %d", (int)p);
    seen one = {.record = from->record,
                .source = digest_add(1, from->source, strlen(from->source)),
                .is_bad = from->replacement == LEAT_REPLACEMENT_ZEROS,
                .id = -1};
    if (!one.is_bad)
        one.digest = see_row(layer, self->model->made->fields, i);
    chain_require(from->epoch == at.epoch && from->position == at.index,
                  "rank %d of %d has %d, %d in place of %d, %d", rank,
                  self->options.world_size, (int)from->epoch,
                  (int)from->position, (int)at.epoch, (int)at.index);
    model_compare(self->model, &one, at.epoch, at.index, "layer");
}

/* A batch of all ranks, from `p` up to `end`. */
static void forward_all(const life *self, int64_t p, int64_t end)
{
    int world = self->options.world_size;
    for (int rank = 0; rank < world; rank++) {
        int status =
            leat_data_layer_forward(self->layer[rank], NULL, 0, LEAT_HOST);
        chain_require(!status, "forward at %d of rank %d of %d: %d, %s", (int)p,
                      rank, world, status, leat_last_error());
        const leat_batch *batch = leat_data_layer_batch(self->layer[rank]);
        int64_t n = 0;
        for (int64_t q = p; q < end; q++)
            if (q % world == rank)
                check_sample(self, rank, n++, q);
        chain_require(batch->valid == n, "rank %d of %d has %d samples, not %d",
                      rank, world, (int)batch->valid, (int)n);
    }
}

/* A rank with bad records alone has no shape, and an epoch that the model does
   not know, of a mix that stops, may be empty. */
static bool is_no_fault(int status)
{
    const char *line = leat_last_error();
    return (status == LEAT_EDATA && strstr(line, "has a shape")) ||
           (status == LEAT_EFORMAT && strstr(line, "there are no samples"));
}

/* False: it cannot go on, which is no fault. */
static bool open_all(life *self, const progress *begin)
{
    for (int rank = 0; rank < self->options.world_size; rank++) {
        leat_data_layer_options options = self->options;
        options.rank = rank;
        int status = leat_data_layer_create(&self->layer[rank],
                                            self->model->pipeline, &options);
        if (!status)
            status = leat_data_layer_setup(self->layer[rank], NULL, 0);
        if (is_no_fault(status))
            return false;
        chain_require(!status, "setup of rank %d of %d: %s", rank,
                      options.world_size, leat_last_error());
        leat_token token;
        leat_token_init(&token);
        if (begin->token[0])
            status = leat_token_parse(&token, begin->token);
        if (!status && begin->token[0])
            status = leat_data_layer_restore(self->layer[rank], &token);
        leat_token_finish(&token);
        if (is_no_fault(status))
            return false;
        chain_require(!status, "restore at %d of rank %d of %d: %d, %s",
                      (int)begin->position, rank, options.world_size, status,
                      leat_last_error());
    }
    return true;
}

static void save(leat_data_layer *layer, progress *out)
{
    leat_token token;
    leat_token_init(&token);
    int status = leat_data_layer_save(layer, &token);
    const char *text = status ? NULL : leat_token_text(&token);
    chain_require(text && strlen(text) < TOKEN_MAX, "save: %d, %s", status,
                  leat_last_error());
    strcpy(out->token, text);
    leat_token_finish(&token);
}

/* From *now on, where it is in the end. */
static void live(life *self, progress *now)
{
    leat_position last;
    bool is_open = open_all(self, now);
    for (int k = 0; is_open && k < self->batches; k++) {
        int64_t p = now->position;
        int64_t end = next_batch(self, &p);
        if (!find(self->model, end - 1, &last))
            break;
        forward_all(self, p, end);
        save(self->layer[below(self->options.world_size)], now);
        now->position = end;
        if (self->fd >= 0)
            chain_require(write(self->fd, now, sizeof(*now)) == sizeof(*now),
                          "write");
    }
    for (int rank = 0; rank < self->options.world_size; rank++)
        leat_data_layer_destroy(self->layer[rank]);
}

/* The same in a process that is killed; whether it was, before its end. */
static bool live_and_die(life *self, progress *now)
{
    int ends[2], status;
    progress next;
    int batches = below(self->batches + 1), pause = below(300);
    chain_require(pipe(ends) == 0, "pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        self->fd = ends[1];
        live(self, now);
        _exit(0);
    }
    close(ends[1]);
    while (batches-- > 0 && read(ends[0], &next, sizeof(next)) == sizeof(next))
        *now = next;
    usleep((useconds_t)pause);
    kill(child, SIGKILL);
    while (read(ends[0], &next, sizeof(next)) == sizeof(next))
        *now = next;
    close(ends[0]);
    chain_require(waitpid(child, &status, 0) == child &&
                      (WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                           : WEXITSTATUS(status) == 0),
                  "the process that is killed ended with %d", status);
    return WIFSIGNALED(status);
}

static bool is_for_layers(const model *from)
{
    int good = 0;
    if (from->made->is_grouped || from->made->is_unordered)
        return false;
    for (int e = 0; e < EPOCHS; e++) {
        const epoch_seen *all = &from->epoch[e];
        if (all->n == 0 || (all->status && all->status != LEAT_END))
            return false;
    }
    for (int i = 0; i < from->epoch[0].n; i++)
        good += !from->epoch[0].at[i].is_bad;
    return good > 0;
}

static void choose_life(life *self)
{
    const model *from = self->model;
    leat_data_layer_options *options = &self->options;
    *options = (leat_data_layer_options)LEAT_DATA_LAYER_OPTIONS_INIT;
    options->world_size = once_in(3) ? 1 : between(1, RANKS_MAX);
    options->batch_size = between(1, BATCH_MAX);
    options->random_seed = (int64_t)from->options.seed;
    options->workers = between(1, 3);
    options->prefetch = between(1, 3);
    options->reader_thread = (leat_reader_thread)below(3);
    options->on_error = LEAT_ON_ERROR_ZERO;
    options->top = tops[from->made->fields];
    options->ntop = from->made->fields == CHAIN_NUMBERS ? 2 : 1;
    options->epoch_end = (leat_epoch_end)below(4);
    int64_t most = options->batch_size * options->world_size;
    for (int e = 0; e < EPOCHS; e++)
        if (options->epoch_end == LEAT_EPOCH_END_DROP &&
            (from->epoch[e].n < most || from->epoch[e].n != from->epoch[0].n))
            options->epoch_end = LEAT_EPOCH_END_WRAP;
    self->batches = between(1, 6);
}

void ranks_run(const model *from, trial_tally *tally)
{
    static progress now;
    if (!is_for_layers(from))
        return;
    now.position = 0;
    now.token[0] = 0;
    for (int k = 0; k < LIVES; k++) {
        life self = {.model = from, .fd = -1};
        choose_life(&self);
        if (once_in(4))
            tally->kills += live_and_die(&self, &now);
        else
            live(&self, &now);
        tally->layers += self.options.world_size;
    }
}
