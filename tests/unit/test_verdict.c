/*
 * What bounds a feed, told from figures: a table of cases, and random figures
 * of which no sentence may come that contradicts what it says itself.
 */
#include "base/random.h"
#include "support/suite.h"

#include <leat/stats.h>

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What happened in ten seconds; times in seconds. */
typedef struct figures {
    const char *work; /* NULL: "transform" */
    int threads;
    int cores;
    int has_reader; /* a thread of its own */
    double reading;
    double busy;
    double input, room, lock;
    double waited;
    double helped; /* of that; 0: forward did not help */
    int has_copies;
    double copying;
    /* Of a chain; its paths are NULL from its length on. */
    struct {
        const char *path;
        double busy, blocked;
    } reader[3];
} figures;

static leat_stats stats_of(const figures *row)
{
    leat_stats stats = {.size = sizeof(stats), .nstages = 2, .elapsed = 10};
    stats.stage[0] = (leat_stage_stats){
        .name = "reader", .threads = row->has_reader, .busy = row->reading};
    stats.stage[1] =
        (leat_stage_stats){.name = row->work ? row->work : "transform",
                           .threads = row->threads,
                           .busy = row->busy,
                           .blocked_empty = row->input,
                           .blocked_full = row->room};
    if (row->has_copies)
        stats.stage[stats.nstages++] =
            (leat_stage_stats){.name = "copy", .busy = row->copying};
    stats.stage[stats.nstages++].name = "forward";
    stats.cores = row->cores;
    stats.waited = row->waited;
    stats.helped = row->helped;
    stats.helped_chunks = row->helped > 0 ? 1000 : 0;
    stats.blocked_lock = row->lock;
    for (int i = 0; i < 3 && row->reader[i].path; i++) {
        leat_reader_stats *reader = &stats.reader[stats.nreaders++];
        snprintf(reader->path, sizeof(reader->path), "%s", row->reader[i].path);
        reader->busy = row->reader[i].busy;
        reader->blocked = row->reader[i].blocked;
    }
    return stats;
}

static const char *verdict_of(const leat_stats *now)
{
    static char line[LEAT_VERDICT_MAX];
    ck_assert_int_eq(leat_stats_verdict(now, NULL, line), LEAT_OK);
    return line;
}

static const struct {
    const char *what;
    figures given;
    const char *word;
    const char *line;
} cases[] = {
    {"workers that are always busy",
     {.work = "decode", .threads = 2, .busy = 19.6, .waited = 6.1},
     "decode",
     "bound by decode: decode by 2 threads busy 98 %, storage busy 0 %, waits "
     "for input 0 %, room 0 %, lock 0 %; forward waits 61 %, helps 0 %; more "
     "cores would help"},
    {"several workers on fewer cores than there are",
     {.threads = 3, .cores = 8, .busy = 29, .waited = 4},
     "transform",
     "bound by transform: transform by 3 threads busy 97 %, storage busy 0 %, "
     "waits for input 0 %, room 0 %, lock 0 %; forward waits 40 %, helps 0 %; "
     "more workers would help"},
    {"a caller that helps is a thread more",
     {.threads = 1, .cores = 2, .busy = 19, .waited = 10, .helped = 9.5},
     "transform",
     "bound by transform: transform by 2 threads busy 95 %, storage busy 0 %, "
     "waits for input 0 %, room 0 %, lock 0 %; forward waits 5 %, helps 95 %; "
     "more cores would help"},
    {"half busy beside a worker that waits for room and a caller that helps",
     {.threads = 1,
      .cores = 2,
      .reading = 1,
      .busy = 9.9,
      .room = 8.1,
      .lock = .7,
      .waited = 9.8,
      .helped = 9.5},
     "room",
     "bound by room: transform by 2 threads busy 50 %, storage busy 5 %, "
     "waits for input 0 %, room 41 %, lock 4 %; forward waits 3 %, helps 95 "
     "%; forward makes batches itself before workers wake"},
    {"workers and caller that wait for each other by turns",
     {.threads = 2, .busy = 12, .room = 7.6, .waited = 3},
     "room",
     "bound by room: transform by 2 threads busy 60 %, storage busy 0 %, "
     "waits for input 0 %, room 38 %, lock 0 %; forward waits 30 %, helps 0 "
     "%; a larger prefetch may help"},
    {"workers that wait for each other",
     {.threads = 4, .reading = 2, .busy = 16, .lock = 20, .waited = 8},
     "lock",
     "bound by the lock: transform by 4 threads busy 40 %, storage busy 5 %, "
     "waits for input 0 %, room 0 %, lock 50 %; forward waits 80 %, helps 0 "
     "%; larger batches or fewer workers may help"},
    {"workers of which one reads at a time, under the lock",
     {.threads = 4, .reading = 9.5, .busy = 4, .lock = 26, .waited = 8},
     "storage",
     "bound by storage: transform by 4 threads busy 10 %, storage busy 24 %, "
     "waits for input 0 %, room 0 %, lock 65 %; forward waits 80 %, helps 0 "
     "%; faster storage would help"},
    {"a reader's thread that is always busy",
     {.threads = 2,
      .has_reader = 1,
      .reading = 9.5,
      .busy = 2,
      .input = 18,
      .waited = 9},
     "storage",
     "bound by storage: transform by 2 threads busy 10 %, storage busy 95 %, "
     "waits for input 90 %, room 0 %, lock 0 %; forward waits 90 %, helps 0 "
     "%; faster storage would help"},
    {"a reader's thread that does not get to run",
     {.threads = 2,
      .has_reader = 1,
      .reading = 2,
      .busy = 4,
      .input = 15,
      .waited = 7},
     "input",
     "bound by input: transform by 2 threads busy 20 %, storage busy 20 %, "
     "waits for input 75 %, room 0 %, lock 0 %; forward waits 70 %, helps 0 "
     "%; the reader's thread is not busy: look for other programs"},
    {"workers that mostly read",
     {.threads = 2, .reading = 13, .busy = 6, .waited = 7},
     "storage",
     "bound by storage: transform by 2 threads busy 30 %, storage busy 65 %, "
     "waits for input 0 %, room 0 %, lock 0 %; forward waits 70 %, helps 0 "
     "%; faster storage or more cores would help"},
    {"a consumer that never waits",
     {.threads = 1, .busy = 3, .room = 6.9, .waited = .1},
     "consumer",
     "the feed keeps up; bound by the consumer: transform by 1 thread busy 30 "
     "%, storage busy 0 %, waits for input 0 %, room 69 %, lock 0 %; forward "
     "waits 1 %, helps 0 %"},
    {"one core, whose worker rests while the caller does all the work itself",
     {.threads = 1,
      .cores = 1,
      .reading = 1,
      .busy = 8.4,
      .room = 9.9,
      .waited = 9.7,
      .helped = 9.4},
     "transform",
     "bound by transform: transform by 2 threads on 1 core busy 84 %, storage "
     "busy 10 %, waits for input 0 %, room 6 %, lock 0 %; forward waits 3 %, "
     "helps 94 %; more cores would help"},
    {"nobody busy and nobody waiting",
     {.threads = 4, .busy = 4, .waited = 9},
     "none",
     "bound by no stage alone: transform by 4 threads busy 10 %, storage busy "
     "0 %, waits for input 0 %, room 0 %, lock 0 %; forward waits 90 %, helps "
     "0 %; look for other programs on these cores"},
    {"no share above all of the time",
     {.work = "decode", .threads = 2, .busy = 20.9, .waited = 10.8},
     "decode",
     "bound by decode: decode by 2 threads busy 100 %, storage busy 0 %, waits "
     "for input 0 %, room 0 %, lock 0 %; forward waits 100 %, helps 0 %; more "
     "cores would help"},
    {"copies that are waited for",
     {.threads = 2,
      .busy = .4,
      .room = 19,
      .waited = 9.6,
      .has_copies = 1,
      .copying = 9.7},
     "copy",
     "bound by copy: transform by 2 threads busy 2 %, storage busy 0 %, copies "
     "busy 97 %, waits for input 0 %, room 95 %, lock 0 %; forward waits 96 "
     "%, helps 0 %; fewer bytes would help: uint8 and transform_on DEVICE"},
    {"copies beside workers that are busier",
     {.threads = 2, .busy = 19.6, .waited = 5, .has_copies = 1, .copying = 6},
     "transform",
     "bound by transform: transform by 2 threads busy 98 %, storage busy 0 %, "
     "copies busy 60 %, waits for input 0 %, room 0 %, lock 0 %; forward waits "
     "50 %, helps 0 %; more cores would help"},
    {"copies beside a reader's thread that is busier",
     {.threads = 2,
      .has_reader = 1,
      .reading = 9.9,
      .busy = 19.6,
      .waited = 5,
      .has_copies = 1,
      .copying = 6},
     "storage",
     "bound by storage: transform by 2 threads busy 98 %, storage busy 99 %, "
     "copies busy 60 %, waits for input 0 %, room 0 %, lock 0 %; forward waits "
     "50 %, helps 0 %; faster storage would help"},
    {"a reader's thread in a chain, of which one is busiest",
     {.threads = 2,
      .has_reader = 1,
      .reading = 9.8,
      .busy = 2,
      .input = 18,
      .waited = 9,
      .reader = {{"shuffle", .8, 0}, {"shuffle/lmdb", 9, 0}}},
     "storage",
     "bound by storage: transform by 2 threads busy 10 %, storage busy 98 % "
     "(shuffle/lmdb 90 %), waits for input 90 %, room 0 %, lock 0 %; forward "
     "waits 90 %, helps 0 %; faster storage would help"},
    {"workers that read by a chain, in their shares of the workers' time",
     {.threads = 2,
      .reading = 13,
      .busy = 6,
      .waited = 7,
      .reader = {{"map", 11, 0}, {"map/lmdb", 2, 0}}},
     "storage",
     "bound by storage: transform by 2 threads busy 30 %, storage busy 65 % "
     "(map 55 %), waits for input 0 %, room 0 %, lock 0 %; forward waits 70 %, "
     "helps 0 %; faster storage or more cores would help"},
    {"a reader that waits for its source, below one that waits for it",
     {.threads = 1,
      .has_reader = 1,
      .reading = 9.5,
      .busy = 1,
      .input = 9,
      .waited = 9,
      .reader = {{"ahead", .1, 9.4},
                 {"ahead/map", .2, 0},
                 {"ahead/map/pipe", .1, 9.4}}},
     "storage",
     "bound by storage: transform by 1 thread busy 10 %, storage busy 95 % "
     "(ahead/map/pipe waits 94 %), waits for input 90 %, room 0 %, lock 0 %; "
     "forward waits 90 %, helps 0 %; faster storage would help"},
    {"a reader's threads, whose share is at most that of all reading",
     {.threads = 1,
      .has_reader = 1,
      .reading = 9.5,
      .busy = 1,
      .input = 9,
      .waited = 9,
      .reader = {{"ahead", .1, 9.4}, {"ahead/gzip", 38, 0}}},
     "storage",
     "bound by storage: transform by 1 thread busy 10 %, storage busy 95 % "
     "(ahead/gzip 95 %), waits for input 90 %, room 0 %, lock 0 %; forward "
     "waits 90 %, helps 0 %; faster storage would help"},
    {"a chain of readers where something else bounds",
     {.work = "decode",
      .threads = 2,
      .busy = 19.6,
      .waited = 6.1,
      .reader = {{"map", .2, 0}, {"map/lmdb", .1, 0}}},
     "decode",
     "bound by decode: decode by 2 threads busy 98 %, storage busy 0 %, waits "
     "for input 0 %, room 0 %, lock 0 %; forward waits 61 %, helps 0 %; more "
     "cores would help"},
    {"a reader alone, whose share is that of storage",
     {.threads = 2,
      .has_reader = 1,
      .reading = 9.5,
      .busy = 2,
      .input = 18,
      .waited = 9,
      .reader = {{"lmdb", 9.5, 0}}},
     "storage",
     "bound by storage: transform by 2 threads busy 10 %, storage busy 95 %, "
     "waits for input 90 %, room 0 %, lock 0 %; forward waits 90 %, helps 0 "
     "%; faster storage would help"},
    {"streams of the consumer that are late",
     {.threads = 2, .room = 19, .waited = 9, .has_copies = 1},
     "consumer",
     "bound by the consumer: transform by 2 threads busy 0 %, storage busy 0 "
     "%, copies busy 0 %, waits for input 0 %, room 95 %, lock 0 %; forward "
     "waits 90 %, helps 0 %; its streams give batches back late"},
};

START_TEST(each_case_has_its_word_and_its_sentence)
{
    leat_stats now = stats_of(&cases[_i].given);
    ck_assert_msg(strcmp(leat_stats_bound_by(&now, NULL), cases[_i].word) == 0,
                  "%s: %s", cases[_i].what, leat_stats_bound_by(&now, NULL));
    ck_assert_msg(strcmp(verdict_of(&now), cases[_i].line) == 0, "%s: %s",
                  cases[_i].what, verdict_of(&now));
}
END_TEST

START_TEST(only_the_time_between_two_readings_counts)
{
    leat_stats before = stats_of(
        &(figures){.threads = 1, .busy = 10, .waited = 10, .helped = 9});
    leat_stats now = before;
    char line[LEAT_VERDICT_MAX];
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_EINVAL);
    ck_assert_ptr_null(leat_stats_bound_by(&now, &before));
    now.elapsed = 20;
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_ptr_eq(strstr(line, "the feed keeps up; "), line);
    ck_assert_str_eq(leat_stats_bound_by(&now, &before), "consumer");
    ck_assert_int_eq(leat_stats_verdict(&now, &before, NULL), LEAT_EINVAL);
    ck_assert_int_eq(leat_stats_verdict(NULL, NULL, line), LEAT_EINVAL);
}
END_TEST

START_TEST(each_share_is_of_what_came_since)
{
    leat_stats before = stats_of(&(figures){.threads = 2,
                                            .has_reader = 1,
                                            .reading = 3,
                                            .busy = 4,
                                            .input = 2,
                                            .room = 3,
                                            .lock = 4,
                                            .waited = 6,
                                            .helped = 5,
                                            .has_copies = 1,
                                            .copying = 5});
    leat_stats now = before;
    char line[LEAT_VERDICT_MAX];
    now.elapsed = 20;
    now.stage[0].busy += 1;
    now.stage[1].busy += 17;
    now.stage[1].blocked_empty += 1;
    now.stage[1].blocked_full += .4;
    now.stage[2].busy += 2;
    now.blocked_lock += .8;
    now.waited += 7;
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_str_eq(line,
                     "bound by transform: transform by 2 threads busy 85 %, "
                     "storage busy 10 %, copies busy 20 %, waits for input 5 "
                     "%, room 2 %, lock 4 %; forward waits 70 %, helps 0 %; "
                     "more cores would help");
}
END_TEST

/* A caller that was compiled when the structure ended earlier. */
START_TEST(what_a_caller_does_not_have_counts_as_nothing)
{
    leat_stats now = stats_of(&(figures){
        .threads = 2, .busy = 4, .lock = 15, .waited = 9, .helped = 9});
    ck_assert_str_eq(leat_stats_bound_by(&now, NULL), "lock");
    now.size = offsetof(leat_stats, helped);
    ck_assert_str_eq(leat_stats_bound_by(&now, NULL), "none");
    ck_assert_ptr_nonnull(strstr(verdict_of(&now), "lock 0 %; forward waits "
                                                   "90 %, helps 0 %; "));
}
END_TEST

/* A reader of another pass, or of none, was not there before. */
START_TEST(a_reader_is_found_again_by_its_path)
{
    figures row = {.threads = 1,
                   .has_reader = 1,
                   .reading = 9.5,
                   .input = 9,
                   .waited = 9,
                   .reader = {{"a", 1, 0}, {"a/b", 50, 0}, {"a/c", 5, 0}}};
    leat_stats before = stats_of(&row);
    leat_stats now = before;
    now.elapsed = 20;
    now.waited = 18;
    now.stage[0].busy = 19;
    now.stage[1].blocked_empty = 18;
    now.reader[1] = before.reader[2];
    now.reader[2] = before.reader[1];
    now.reader[0].busy += 2;
    now.reader[1].busy += 4;
    now.reader[2].busy += 3;
    char line[LEAT_VERDICT_MAX];
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_ptr_nonnull(strstr(line, "busy 95 % (a/c 40 %), waits"));
    now.size = offsetof(leat_stats, nreaders);
    ck_assert_int_eq(leat_stats_verdict(&now, &before, line), LEAT_OK);
    ck_assert_ptr_nonnull(strstr(line, "busy 95 %, waits"));
}
END_TEST

/* Of a path that is too long the end is printed, or nothing. */
START_TEST(a_readers_path_has_the_room_that_is_left)
{
    char path[LEAT_READER_PATH_MAX] = "";
    char end[LEAT_READER_PATH_MAX + 32];
    for (int n = 1; n < LEAT_READER_PATH_MAX; n++) {
        path[n - 1] = (char)('a' + n % 26);
        path[n] = 0;
        leat_stats now =
            stats_of(&(figures){.threads = _i ? 1000000 : 1,
                                .cores = _i ? 100000 : 0,
                                .has_reader = 1,
                                .reading = 9.94,
                                .input = 1e7,
                                .waited = 10,
                                .has_copies = _i,
                                .reader = {{"top", 0, 0}, {path, 9, 0}}});
        const char *line = verdict_of(&now);
        ck_assert_str_eq(leat_stats_bound_by(&now, NULL), "storage");
        ck_assert_int_lt(strlen(line), LEAT_VERDICT_MAX);
        ck_assert_ptr_nonnull(strstr(line, "; faster storage would help"));
        snprintf(end, sizeof(end), "%s 90 %%), ", path + (n > 20 ? n - 20 : 0));
        ck_assert_msg(strstr(line, end) != NULL, "%s", line);
        ck_assert_int_eq(strstr(line, " (...") != NULL, !strstr(line, path));
    }
}
END_TEST

/* ck_assert_msg writes a mark each time, which takes longer than the rest. */
#define HOLDS(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg("%s: %s", #condition, line);                          \
    } while (0)

/* What a sentence says, read back. */
typedef struct told {
    int keeps_up, threads, cores;
    int busy, storage, copies, input, room, lock, waits, helps;
    int reader; /* the share of one; below 0: none is named */
    const char *advice;
} told;

/* The number after `words`, which are there. */
static int number_after(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    if (!at)
        ck_abort_msg("no '%s' in: %s", words, line);
    return atoi(at + strlen(words));
}

/* " (map/lmdb 90 %)", or " (map/lmdb waits 90 %)". */
static int share_of_reader(const char *line)
{
    const char *at = strstr(line, " (");
    size_t digits = at ? strcspn(at, "0123456789") : 0;
    return at ? atoi(at + digits) : -1;
}

static told read_back(const char *line)
{
    const char *helps = strstr(line, ", helps ");
    HOLDS(helps != NULL);
    const char *advice = strchr(helps, ';');
    return (told){
        .keeps_up = strncmp(line, "the feed keeps up; ", 19) == 0,
        .busy = number_after(line, " busy "),
        .storage = number_after(line, "storage busy "),
        .copies =
            strstr(line, "copies") ? number_after(line, "copies busy ") : -1,
        .input = number_after(line, "waits for input "),
        .room = number_after(line, " room "),
        .lock = number_after(line, " lock "),
        .waits = number_after(line, "forward waits "),
        .helps = number_after(line, "helps "),
        .reader = share_of_reader(line),
        .advice = advice ? advice + 2 : "",
    };
}

static int is_advice(const told *it, const char *words)
{
    return strstr(it->advice, words) != NULL;
}

/* What a reader of the sentence would call a contradiction. */
static void check_sense(const char *line, const figures *given)
{
    told it = read_back(line);
    int waits = it.input + it.room + it.lock;
    int reading = given->has_reader ? 0 : it.storage;
    HOLDS(it.busy >= 0 && it.storage >= 0 && it.input >= 0 && it.room >= 0);
    HOLDS(it.lock >= 0 && it.waits >= 0 && it.helps >= 0);
    HOLDS(it.busy + reading + waits <= 100);
    HOLDS(it.storage <= 100 && it.copies <= 100 && it.waits + it.helps <= 100);
    HOLDS(it.keeps_up == (it.waits + it.helps < 10));
    HOLDS(it.keeps_up == (it.advice[0] == 0));
    if (is_advice(&it, "more cores") || is_advice(&it, "more workers"))
        HOLDS(it.room < 20 && it.input < 20 && it.lock < 20 &&
              it.busy + reading >= 50);
    if (is_advice(&it, "more workers"))
        HOLDS(given->threads + 1 < given->cores);
    if (is_advice(&it, "faster storage"))
        HOLDS(it.storage >= 50 || (!given->has_reader && it.lock >= 20));
    if (is_advice(&it, "faster storage"))
        HOLDS(it.room < 20 || it.room <= it.input || it.room <= it.lock);
    if (is_advice(&it, "prefetch"))
        HOLDS(it.room >= 20 && it.room > it.input && it.room > it.lock &&
              it.waits >= it.helps);
    if (is_advice(&it, "before workers wake"))
        HOLDS(it.room >= 20 && it.helps > it.waits);
    if (is_advice(&it, "late"))
        HOLDS(it.room >= 20 && it.copies >= 0 && it.copies < it.room);
    if (is_advice(&it, "fewer bytes"))
        HOLDS(it.copies >= 50 || (it.room >= 20 && it.copies >= it.room));
    if (is_advice(&it, "fewer workers"))
        HOLDS(it.lock >= 20 && it.lock > it.input && it.lock >= it.room);
    if (is_advice(&it, "is not busy"))
        HOLDS(it.input >= 20 && it.storage < 50);
    HOLDS(it.reader <= it.storage);
    HOLDS(it.reader < 0 || strstr(line, "bound by storage: ") != NULL);
    if (is_advice(&it, "on these cores"))
        HOLDS(it.busy + reading < 50 && waits < 60);
}

/* The word, as the sentence has it. */
static void check_word(const char *line, const char *word)
{
    char phrase[64];
    const char *article =
        !strcmp(word, "consumer") || !strcmp(word, "lock") ? "the " : "";
    snprintf(phrase, sizeof(phrase), "bound by %s%s: ", article,
             strcmp(word, "none") ? word : "no stage alone");
    if (!strstr(line, phrase))
        ck_abort_msg("%s: %s", word, line);
}

/* Each figure depends on its number alone. */
static uint32_t chance(uint32_t trial, uint32_t which, uint32_t n)
{
    uint32_t words[4];
    leat__random_words(14, 0, trial, which, words);
    return leat__random_below(words[0], n);
}

/* Often nothing, often all, seldom more than there can be. */
static double share(uint32_t trial, uint32_t which)
{
    static const double most[] = {0, 0.05, 0.25, 0.6, 1, 1, 1.1};
    return most[chance(trial, which, 7)] *
           (double)chance(trial, which + 100, 1001) / 1000;
}

static figures random_figures(uint32_t trial)
{
    int threads = 1 + (int)chance(trial, 0, 6);
    double all = 10 * threads;
    figures row = {
        .work = chance(trial, 1, 2) ? "decode" : "transform",
        .threads = threads,
        .cores = (int)chance(trial, 2, 9),
        .has_reader = (int)chance(trial, 3, 2),
        .busy = all * share(trial, 4),
        .input = all * share(trial, 5),
        .room = all * share(trial, 6),
        .lock = all * share(trial, 7),
        .waited = 10 * share(trial, 8),
        .has_copies = (int)chance(trial, 9, 2),
        .copying = 10 * share(trial, 10),
    };
    row.reading = (row.has_reader ? 10 : all) * share(trial, 11);
    row.helped = row.waited * share(trial, 12);
    row.reader[0].path = "map";
    row.reader[0].busy = row.reading * share(trial, 13);
    row.reader[1].path = chance(trial, 14, 2) ? "map/lmdb" : NULL;
    row.reader[1].busy = row.reading * share(trial, 15);
    row.reader[1].blocked = row.reading * share(trial, 16);
    return row;
}

START_TEST(no_sentence_contradicts_its_figures)
{
    for (uint32_t trial = 0; trial < 200000; trial++) {
        figures row = random_figures(trial);
        leat_stats now = stats_of(&row);
        const char *line = verdict_of(&now);
        HOLDS(strlen(line) < LEAT_VERDICT_MAX - 1);
        check_sense(line, &row);
        check_word(line, leat_stats_bound_by(&now, NULL));
    }
}
END_TEST

START_TEST(a_long_verdict_has_room)
{
    leat_stats now = stats_of(&(figures){.threads = 1000000,
                                         .cores = 100000,
                                         .busy = 1e5,
                                         .room = 1e6,
                                         .waited = 10,
                                         .has_copies = 1,
                                         .copying = 10,
                                         .has_reader = 1,
                                         .reading = 9.94});
    const char *line = verdict_of(&now);
    ck_assert_ptr_nonnull(strstr(line, "by 1000000 threads on 100000 cores"));
    ck_assert_ptr_nonnull(strstr(line, "; fewer bytes would help: uint8 and "
                                       "transform_on DEVICE"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verdict");
    TCase *tcase = tcase_create("verdict");
    int ncases = (int)(sizeof(cases) / sizeof(cases[0]));
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, each_case_has_its_word_and_its_sentence, 0,
                        ncases);
    tcase_add_test(tcase, only_the_time_between_two_readings_counts);
    tcase_add_test(tcase, each_share_is_of_what_came_since);
    tcase_add_test(tcase, what_a_caller_does_not_have_counts_as_nothing);
    tcase_add_test(tcase, a_reader_is_found_again_by_its_path);
    tcase_add_loop_test(tcase, a_readers_path_has_the_room_that_is_left, 0, 2);
    tcase_add_test(tcase, no_sentence_contradicts_its_figures);
    tcase_add_test(tcase, a_long_verdict_has_room);
    return suite_run(suite);
}
