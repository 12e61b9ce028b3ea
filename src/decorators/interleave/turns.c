#include "decorators/interleave/turns.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdbool.h>
#include <string.h>

/* The inputs while turns are planned. */
typedef struct plan {
    leat__turns *turns;
    const int64_t *count;
    int n;
    int cycle;
    int next;    /* input that has no slot yet */
    int *input;  /* of each slot; -1: none */
    int64_t *at; /* of each slot's input, the next sample */
} plan;

/* Makes room for one more of `n` elements. LEAT_ENOMEM. */
static int grow(void **array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return LEAT_OK;
    size_t more = *room ? 2 * *room : 16;
    void *grown = leat__realloc(*array, more * size);
    if (!grown)
        return LEAT_ENOMEM;
    *array = grown;
    *room = more;
    return LEAT_OK;
}

static int add_turn(leat__turns *turns, leat__turn turn)
{
    if (turns->nturns == LEAT__TURNS_MAX)
        return leat_error(LEAT_ELIMIT, "more than %zu turns", LEAT__TURNS_MAX);
    int status = grow((void **)&turns->turn, turns->nturns, &turns->turn_room,
                      sizeof(turn));
    if (!status)
        turns->turn[turns->nturns++] = turn;
    return status;
}

static int64_t left_of(const plan *plan, int slot)
{
    int64_t count = plan->count[plan->input[slot]];
    return count == LEAT_ENDLESS ? LEAT_ENDLESS : count - plan->at[slot];
}

/* Fills empty slots; the rounds in which all turns are full, -1: no input. */
static int64_t begin_segment(plan *plan)
{
    int64_t rounds = -1;
    for (int slot = 0; slot < plan->cycle; slot++) {
        if (plan->input[slot] < 0 && plan->next < plan->n) {
            plan->input[slot] = plan->next++;
            plan->at[slot] = 0;
        }
        if (plan->input[slot] < 0)
            continue;
        int64_t full = left_of(plan, slot) / plan->turns->block;
        if (rounds < 0 || full < rounds)
            rounds = full;
    }
    return rounds;
}

/* What overflows is after the last segment. */
static void pass_by(plan *plan, int slot, int64_t rounds)
{
    int64_t samples;
    if (__builtin_mul_overflow(rounds, plan->turns->block, &samples) ||
        __builtin_add_overflow(plan->at[slot], samples, &samples))
        return;
    plan->at[slot] = samples;
}

/* Full turns of `rounds` rounds, or for 0 those of one in which inputs end. */
static int add_turns(plan *plan, int64_t rounds, leat__turn_segment *segment)
{
    leat__turns *turns = plan->turns;
    int status = LEAT_OK;
    for (int slot = 0; slot < plan->cycle && !status; slot++) {
        if (plan->input[slot] < 0)
            continue;
        int64_t left = left_of(plan, slot);
        int64_t size = left < turns->block ? left : turns->block;
        const leat__turn turn = {plan->at[slot], segment->size,
                                 plan->input[slot]};
        if (size > 0)
            status = add_turn(turns, turn);
        segment->nturns += size > 0;
        if (__builtin_add_overflow(segment->size, size, &segment->size))
            segment->size = LEAT_ENDLESS;
        if (left < turns->block)
            plan->input[slot] = -1;
        else
            pass_by(plan, slot, rounds > 0 ? rounds : 1);
    }
    return status;
}

/* Adds a segment; *is_last after the last one, or one without an end. */
static int add_segment(plan *plan, bool *is_last)
{
    leat__turns *turns = plan->turns;
    int64_t rounds = begin_segment(plan), size;
    leat__turn_segment segment = {.first = turns->count,
                                  .rounds = rounds > 0 ? rounds : 1,
                                  .turn = turns->nturns};
    *is_last = rounds < 0;
    if (rounds < 0)
        return LEAT_OK;
    int status = add_turns(plan, rounds, &segment);
    if (status || segment.size == 0)
        return status;
    status = grow((void **)&turns->segment, turns->nsegments,
                  &turns->segment_room, sizeof(segment));
    if (status)
        return status;
    turns->segment[turns->nsegments++] = segment;
    *is_last = __builtin_mul_overflow(segment.rounds, segment.size, &size) ||
               __builtin_add_overflow(turns->count, size, &turns->count);
    if (*is_last)
        turns->count = LEAT_ENDLESS;
    return LEAT_OK;
}

static int make_plan(leat__turns *turns, const int64_t count[], int n,
                     int cycle)
{
    plan plan = {.turns = turns, .count = count, .n = n, .cycle = cycle};
    plan.input = leat__alloc_zero((size_t)cycle, sizeof(*plan.input));
    plan.at = leat__alloc_zero((size_t)cycle, sizeof(*plan.at));
    int status = plan.input && plan.at ? LEAT_OK : LEAT_ENOMEM;
    for (int slot = 0; slot < cycle && !status; slot++)
        plan.input[slot] = -1;
    for (bool is_last = false; !status && !is_last;)
        status = add_segment(&plan, &is_last);
    leat__free(plan.input);
    leat__free(plan.at);
    return status;
}

int leat__turns_create(leat__turns **out, const int64_t count[], int n,
                       int cycle, int64_t block)
{
    leat__turns *turns = leat__alloc_zero(1, sizeof(*turns));
    if (!turns)
        return LEAT_ENOMEM;
    turns->block = block;
    int status = make_plan(turns, count, n, cycle);
    if (status)
        leat__turns_destroy(turns);
    else
        *out = turns;
    return status;
}

void leat__turns_destroy(leat__turns *turns)
{
    if (!turns)
        return;
    leat__free(turns->segment);
    leat__free(turns->turn);
    leat__free(turns);
}

static const leat__turn *turns_of(const leat__turns *turns,
                                  const leat__turn_cursor *cursor)
{
    return &turns->turn[cursor->segment->turn];
}

/* Samples of a turn: up to where the next one begins. */
static int64_t turn_size(const leat__turns *turns,
                         const leat__turn_cursor *cursor)
{
    const leat__turn *turn = turns_of(turns, cursor) + cursor->turn;
    bool is_last = cursor->turn + 1 == cursor->segment->nturns;
    return (is_last ? cursor->segment->size : turn[1].before) - turn->before;
}

static const leat__turn_segment *find_segment(const leat__turns *turns,
                                              int64_t at)
{
    size_t low = 0, high = turns->nsegments;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (turns->segment[middle].first <= at)
            low = middle;
        else
            high = middle;
    }
    return &turns->segment[low];
}

/* The turn of a round that has its sample `at`. */
static int find_turn(const leat__turn *turn, int n, int64_t at)
{
    int low = 0, high = n;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (turn[middle].before <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void search(const leat__turns *turns, leat__turn_cursor *cursor,
                   int64_t at)
{
    const leat__turn_segment *segment = find_segment(turns, at);
    int64_t in_segment = at - segment->first;
    cursor->segment = segment;
    cursor->round = in_segment / segment->size;
    int64_t in_round = in_segment - cursor->round * segment->size;
    cursor->turn =
        find_turn(turns_of(turns, cursor), segment->nturns, in_round);
    cursor->in_turn = in_round - turns_of(turns, cursor)[cursor->turn].before;
    cursor->left = turn_size(turns, cursor) - cursor->in_turn - 1;
}

/* From the last sample of a turn to the next turn. */
static void enter_turn(const leat__turns *turns, leat__turn_cursor *cursor)
{
    cursor->in_turn = 0;
    cursor->turn++;
    if (cursor->turn == cursor->segment->nturns) {
        cursor->turn = 0;
        cursor->round++;
        if (cursor->round == cursor->segment->rounds) {
            cursor->round = 0;
            cursor->segment++;
        }
    }
    cursor->left = turn_size(turns, cursor) - 1;
}

int leat__turns_find(const leat__turns *turns, leat__turn_cursor *cursor,
                     int64_t at, int64_t *index)
{
    if (!cursor->segment || at != cursor->at + 1) {
        search(turns, cursor, at);
    } else if (cursor->left > 0) {
        cursor->left--;
        cursor->in_turn++;
    } else {
        enter_turn(turns, cursor);
    }
    cursor->at = at;
    const leat__turn *turn = turns_of(turns, cursor) + cursor->turn;
    *index = turn->index + cursor->round * turns->block + cursor->in_turn;
    return turn->input;
}
