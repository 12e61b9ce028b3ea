/*
 * A process is killed while its layers deliver, over a decorator of each kind,
 * and the next one resumes from the last token that it wrote, on other numbers
 * of ranks, workers and samples: together they deliver what an uninterrupted
 * run does. LEAT_KILL_SEED=N repeats the choices of a run that printed N.
 */
#include "support/child.h"
#include "support/layer_chains.h"
#include "support/layer_fixture.h"
#include "support/suite.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { KILLS = 10, SAMPLES = 150, RANKS_MAX = 4, BATCH_MAX = 4 };
enum { TESTS = 2 * LAYER_CHAINS }; /* each with two generators */
enum { MOST = RANKS_MAX * BATCH_MAX, STORED_MAX = SAMPLES + MOST };

/* A global batch, which a child writes by one call. */
typedef struct record {
    int32_t count;
    int32_t is_last; /* the samples ended by themselves */
    uint32_t digest[MOST];
    char token[1024]; /* after the batch */
} record;

/* One child: how its layers run, and how far. */
typedef struct life {
    int fd;
    int world, batch_size, workers, prefetch;
    int batches;    /* then it waits for its end; 0: it never does */
    int64_t wanted; /* samples after which it exits */
    int64_t begin;  /* position in the sequence */
    char token[1024];
} life;

static leat_pipeline *pipeline;
static leat_rng rng; /* CAFFE: each rank has its own, so there is one */
static unsigned dice;

static int roll(int sides)
{
    dice = dice * 1103515245 + 12345;
    return (int)(dice >> 16) % sides;
}

static void open_ranks(const life *self, layer_fixture rank[], bool has_ended[])
{
    leat_data_layer_options options;
    leat_transform_options transform;
    layer_fixture_options(&options, &transform);
    transform.crop_size = 3;
    transform.mirror = 1;
    options.random_seed = 99;
    options.rng = rng;
    options.on_error = LEAT_ON_ERROR_ZERO;
    options.world_size = self->world;
    options.batch_size = self->batch_size;
    options.workers = self->workers;
    options.prefetch = self->prefetch;
    for (int r = 0; r < self->world; r++) {
        options.rank = r;
        rank[r] = layer_fixture_open(pipeline, &options);
        has_ended[r] = false;
        if (!self->token[0])
            continue;
        leat_token token;
        leat_token_init(&token);
        child_check(leat_token_parse(&token, self->token) == LEAT_OK);
        int status = leat_data_layer_restore(rank[r].layer, &token);
        has_ended[r] = status == LEAT_END;
        child_check(status == LEAT_OK || has_ended[r]);
        leat_token_finish(&token);
    }
}

/* What a sample is, and where it comes from. */
static uint32_t digest_of(layer_fixture *fixture, int i)
{
    const leat_provenance *from =
        &leat_data_layer_batch(fixture->layer)->from[i];
    const int64_t where[] = {layer_fixture_sample_digest(fixture, i),
                             from->epoch, from->position};
    return (uint32_t)crc32_z(0, (const Bytef *)where, sizeof(where));
}

/* Forward on every rank; the samples go to their positions in the record. */
static void deliver(const life *self, layer_fixture rank[],
                    const bool has_ended[], int64_t position, record *out)
{
    bool is_set[MOST] = {false};
    for (int r = 0; r < self->world; r++) {
        int status = has_ended[r] ? LEAT_END : layer_fixture_forward(&rank[r]);
        child_check(status == LEAT_OK || status == LEAT_END);
        int n = status ? 0 : leat_data_layer_batch(rank[r].layer)->n;
        int64_t world = self->world;
        int64_t first = (r - position % world + world) % world;
        for (int i = 0; i < n; i++, out->count++) {
            int64_t at = first + i * world;
            child_check(at < MOST && !is_set[at]);
            is_set[at] = true;
            out->digest[at] = digest_of(&rank[r], i);
        }
    }
    for (int i = 0; i < out->count; i++)
        child_check(is_set[i]);
    out->is_last = out->count < self->world * self->batch_size;
}

static void save(layer_fixture *fixture, record *out)
{
    leat_token token;
    leat_token_init(&token);
    child_check(leat_data_layer_save(fixture->layer, &token) == LEAT_OK);
    const char *text = leat_token_text(&token);
    child_check(text && strlen(text) < sizeof(out->token));
    memcpy(out->token, text, strlen(text));
    leat_token_finish(&token);
}

static void live(const life *self)
{
    layer_fixture rank[RANKS_MAX];
    bool has_ended[RANKS_MAX];
    bool is_last = false;
    int64_t position = self->begin;
    open_ranks(self, rank, has_ended);
    for (int n = 0; !is_last && position < self->wanted; n++) {
        while (self->batches > 0 && n >= self->batches)
            pause();
        record next = {0};
        deliver(self, rank, has_ended, position, &next);
        if (!next.is_last)
            save(&rank[roll(self->world)], &next);
        child_check(write(self->fd, &next, sizeof(next)) == sizeof(next));
        position += next.count;
        is_last = next.is_last;
    }
    for (int r = 0; r < self->world; r++)
        layer_fixture_close(&rank[r]);
}

static int64_t count_records(int fd)
{
    struct stat stat;
    ck_assert_int_eq(fstat(fd, &stat), 0);
    return stat.st_size / (int64_t)sizeof(record);
}

/* Kills the child once it has written `enough` records in all, some moments
   later; whether it was killed, instead of having ended before. */
static bool kill_at(pid_t child, int fd, int64_t enough, int moments)
{
    int status = 0;
    pid_t ended = 0;
    while (!ended && (count_records(fd) < enough || moments-- > 0)) {
        ended = waitpid(child, &status, WNOHANG);
        sched_yield();
    }
    if (!ended) {
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ended = waitpid(child, &status, 0);
    }
    ck_assert_int_eq(ended, child);
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    ck_assert_msg(was_killed || (WIFEXITED(status) && !WEXITSTATUS(status)),
                  "the child ended with status %d", status);
    return was_killed;
}

static pid_t begin(const life *self)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child > 0)
        return child;
    alarm(CHILD_SECONDS);
    live(self);
    _exit(0);
}

/* What the children of a run delivered, one after the other. */
typedef struct sequence {
    uint32_t digest[STORED_MAX];
    int64_t count;
    bool has_ended;
} sequence;

/* Takes the records from number `first` on; the token of the last. */
static void take(int fd, int64_t first, sequence *out, char *token)
{
    record next;
    int64_t records = count_records(fd);
    for (int64_t i = first; i < records; i++) {
        off_t at = (off_t)(i * (int64_t)sizeof(next));
        ck_assert_int_eq(pread(fd, &next, sizeof(next), at), sizeof(next));
        ck_assert(!out->has_ended && out->count + next.count <= STORED_MAX);
        memcpy(out->digest + out->count, next.digest,
               (size_t)next.count * sizeof(next.digest[0]));
        out->count += next.count;
        out->has_ended = next.is_last;
        memcpy(token, next.token, sizeof(next.token));
    }
    /* A record that was cut goes. */
    off_t end = (off_t)(records * (int64_t)sizeof(next));
    ck_assert_int_eq(ftruncate(fd, end), 0);
    ck_assert_int_eq(lseek(fd, end, SEEK_SET), end);
}

/* One layer that nobody kills. */
static void run_through(sequence *out)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    life self = {.fd = fileno(file),
                 .world = 1,
                 .batch_size = 1,
                 .workers = 1,
                 .prefetch = 1,
                 .wanted = STORED_MAX};
    ck_assert(!kill_at(begin(&self), self.fd, INT64_MAX, 0));
    take(self.fd, 0, out, self.token);
    ck_assert_int_ge(out->count, 10);
    fclose(file);
}

/* Lives until all samples are there. How many of them were killed. */
static int run_with_kills(sequence *out)
{
    static const int worlds[] = {1, 2, RANKS_MAX};
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    life self = {.fd = fileno(file), .wanted = SAMPLES};
    int kills = 0;
    while (!out->has_ended && out->count < SAMPLES) {
        self.world = rng == LEAT_RNG_CAFFE ? 1 : worlds[roll(3)];
        self.batch_size = 1 + roll(BATCH_MAX);
        self.workers = 1 + roll(3);
        self.prefetch = 1 + roll(4);
        self.batches = 1 + roll(4);
        self.begin = out->count;
        int64_t before = count_records(self.fd);
        int64_t enough = before + roll(self.batches + 1);
        kills += kill_at(begin(&self), self.fd, enough, roll(100));
        take(self.fd, before, out, self.token);
    }
    fclose(file);
    return kills;
}

static void expect_same(const sequence *whole, const sequence *parts)
{
    if (parts->has_ended)
        ck_assert(whole->has_ended && parts->count == whole->count);
    ck_assert_int_le(parts->count, whole->count);
    for (int64_t i = 0; i < parts->count; i++)
        ck_assert_msg(parts->digest[i] == whole->digest[i],
                      "sample %lld of %lld differs", (long long)i,
                      (long long)parts->count);
}

START_TEST(lives_that_are_killed_deliver_what_one_does)
{
    const char *text = getenv("LEAT_KILL_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 10)
                         : (unsigned)time(NULL) * TESTS + (unsigned)_i;
    static sequence whole;
    int kills = 0, runs = 0;
    dice = seed;
    rng = _i % 2 ? LEAT_RNG_CAFFE : LEAT_RNG_LEAT;
    printf("chain %d: LEAT_KILL_SEED=%u\n", _i / 2, seed);
    fflush(stdout);
    pipeline = layer_chains_make(_i / 2);
    run_through(&whole);
    for (; kills < KILLS; runs++) {
        sequence parts = {0};
        kills += run_with_kills(&parts);
        expect_same(&whole, &parts);
    }
    printf("chain %d: %d kills in %d runs\n", _i / 2, kills, runs);
    leat_pipeline_unref(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("killed_layers");
    TCase *tcase = tcase_create("killed_layers");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, lives_that_are_killed_deliver_what_one_does, 0,
                        TESTS);
    return suite_run(suite);
}
