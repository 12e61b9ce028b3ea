#include "decorators/mix/draw_table.h"
#include "base/error.h"
#include "base/memory.h"

#include <leat/choice.h>
#include <leat/ext/reader.h>

#include <string.h>

/* Draws of a block, at least; all orders together have about ORDERED. */
enum { BLOCK_MIN = 256, ORDERS_MAX = 256, ORDERS_MIN = 4, ORDERED = 1 << 14 };

/* Operations of leat_choice. */
enum { CHOICE_ORDER = 0x6d6f, CHOICE_LAST = 0x6d6c };

static int64_t gcd(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * The input that is drawn at step `t`, from 1: of those which may be drawn
 * already the one that has to be drawn first. With slack 1 / (2 n - 2) there
 * always is one, and none is late.
 */
static int choose(const int64_t weight[], const int64_t drawn[], int n,
                  int64_t period, int64_t t)
{
    int64_t slack = n > 1 ? 2 * (int64_t)n - 2 : 1;
    int64_t first = INT64_MAX;
    int chosen = 0;
    for (int i = 0; i < n; i++) {
        int64_t scaled = slack * weight[i];
        if (weight[i] == 0 ||
            scaled * t < (slack * drawn[i] + (n > 1)) * period)
            continue;
        int64_t due = (slack * (drawn[i] + 1) - (n > 1)) * period / scaled;
        if (due < first) {
            first = due;
            chosen = i;
        }
    }
    return chosen;
}

/* A period of the even order. LEAT_ENOMEM. */
static int draw_evenly(leat__draw_table *table)
{
    int64_t *drawn = leat__alloc_zero((size_t)table->n, sizeof(*drawn));
    if (!drawn)
        return LEAT_ENOMEM;
    for (int64_t t = 0; t < table->period; t++) {
        int i = choose(table->weight, drawn, table->n, table->period, t + 1);
        table->even[t].input = (uint16_t)i;
        table->even[t].rank = (uint32_t)drawn[i]++;
    }
    leat__free(drawn);
    return LEAT_OK;
}

/* Numbers the draws of each input. */
static void rank(leat__draw *draw, int64_t n, uint32_t drawn[], int inputs)
{
    memset(drawn, 0, (size_t)inputs * sizeof(*drawn));
    for (int64_t k = 0; k < n; k++)
        draw[k].rank = drawn[draw[k].input]++;
}

static void shuffle(leat__draw *draw, int64_t n, uint64_t seed, int order,
                    uint32_t operation)
{
    uint32_t words[4];
    for (int64_t k = n - 1; k > 0; k--) {
        leat_choice(seed, order, k, operation, words);
        int64_t other = (int64_t)leat_choice_below(words, (uint64_t)k + 1);
        leat__draw kept = draw[k];
        draw[k] = draw[other];
        draw[other] = kept;
    }
}

/* Draw `k` of the even order, as one of its block. */
static leat__draw even_draw(const leat__draw_table *table, int64_t k)
{
    leat__draw draw = table->even[k % table->period];
    draw.rank += (uint32_t)(k / table->period * table->weight[draw.input]);
    return draw;
}

/* Makes all orders of the first `n` draws. NULL without memory. */
static leat__draw *make_orders(leat__draw_table *table, int64_t n,
                               uint32_t operation)
{
    size_t bytes = (size_t)table->orders * (size_t)n * sizeof(leat__draw);
    uint32_t *drawn = leat__alloc_zero((size_t)table->n, sizeof(*drawn));
    leat__draw *all = drawn ? leat__alloc(bytes) : NULL;
    for (int i = 0; i < table->orders && all; i++) {
        leat__draw *order = all + i * n;
        for (int64_t k = 0; k < n; k++)
            order[k] = even_draw(table, k);
        shuffle(order, n, table->seed, i, operation);
        rank(order, n, drawn, table->n);
    }
    leat__free(drawn);
    table->bytes += all ? bytes : 0;
    return all;
}

static int fill(leat__draw_table *table)
{
    size_t n = (size_t)table->period;
    table->even = leat__alloc_zero(n, sizeof(*table->even));
    int status = table->even ? draw_evenly(table) : LEAT_ENOMEM;
    table->bytes = n * sizeof(*table->even);
    if (status || table->is_even)
        return status;
    table->draw = make_orders(table, table->block, CHOICE_ORDER);
    return table->draw ? LEAT_OK : LEAT_ENOMEM;
}

/* How long blocks are, and of how many orders. */
static void size_blocks(leat__draw_table *table)
{
    table->periods = 1;
    table->orders = 1;
    if (!table->is_even) {
        table->periods = (BLOCK_MIN + table->period - 1) / table->period;
        int64_t orders = ORDERED / (table->period * table->periods);
        if (orders > ORDERS_MAX)
            orders = ORDERS_MAX;
        table->orders = orders < ORDERS_MIN ? ORDERS_MIN : (int)orders;
    }
    table->block = table->period * table->periods;
}

/* The weights without their common divisor. */
static int set_weights(leat__draw_table *table, const int64_t weight[])
{
    int64_t divisor = 0;
    for (int i = 0; i < table->n; i++)
        divisor = gcd(weight[i], divisor);
    for (int i = 0; i < table->n; i++) {
        table->weight[i] = weight[i] / divisor;
        table->period += table->weight[i];
        if (table->period > LEAT__PERIOD_MAX)
            return leat_error(LEAT_EINVAL,
                              "the weights have no common measure of %d parts: "
                              "expected fewer digits",
                              LEAT__PERIOD_MAX);
    }
    return LEAT_OK;
}

int leat__draw_table_create(leat__draw_table **out, const int64_t weight[],
                            int n, bool is_even, uint64_t seed)
{
    leat__draw_table *table = leat__alloc_zero(1, sizeof(*table));
    if (!table)
        return LEAT_ENOMEM;
    table->n = n;
    table->is_even = is_even;
    table->seed = seed;
    table->length = LEAT_ENDLESS;
    table->weight = leat__alloc_zero((size_t)n, sizeof(*table->weight));
    int status = table->weight ? set_weights(table, weight) : LEAT_ENOMEM;
    if (!status) {
        size_blocks(table);
        status = fill(table);
    }
    if (status)
        leat__draw_table_destroy(table);
    else
        *out = table;
    return status;
}

void leat__draw_table_destroy(leat__draw_table *table)
{
    if (!table)
        return;
    leat__free(table->weight);
    leat__free(table->even);
    leat__free(table->draw);
    leat__free(table->last);
    leat__free(table);
}

int64_t leat__draw_table_find(const leat__draw_table *table, int i,
                              int64_t number)
{
    int64_t at = 0, periods;
    if (number == LEAT_ENDLESS)
        return LEAT_ENDLESS;
    uint32_t rank = (uint32_t)(number % table->weight[i]);
    while (table->even[at].input != i || table->even[at].rank != rank)
        at++;
    if (__builtin_mul_overflow(number / table->weight[i], table->period,
                               &periods) ||
        __builtin_add_overflow(periods, at, &at))
        return LEAT_ENDLESS;
    return at;
}

int64_t leat__draw_table_count(const leat__draw_table *table, int i,
                               int64_t length)
{
    int64_t count = length / table->period * table->weight[i];
    for (int64_t k = 0; k < length % table->period; k++)
        count += table->even[k].input == i;
    return count;
}

int leat__draw_table_end(leat__draw_table *table, int64_t length)
{
    table->length = length;
    if (table->is_even || length == LEAT_ENDLESS || length % table->block == 0)
        return LEAT_OK;
    table->last = make_orders(table, length % table->block, CHOICE_LAST);
    return table->last ? LEAT_OK : LEAT_ENOMEM;
}

/*
 * One of the orders: a few nanoseconds, by the finalizer of SplitMix64 (Steele,
 * Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
 */
static int64_t choose_order(const leat__draw_table *table, int64_t epoch,
                            int64_t number)
{
    uint64_t x = table->seed + (uint64_t)epoch * 0xd1342543de82ef95u +
                 (uint64_t)number * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (int64_t)((x >> 32) * (uint64_t)table->orders >> 32);
}

leat__draw_block leat__draw_table_block(const leat__draw_table *table,
                                        int64_t epoch, int64_t at)
{
    leat__draw_block block = {.epoch = epoch, .size = table->block};
    block.number = at / table->block;
    block.first = block.number * table->block;
    block.draw = table->even;
    /* An endless order has no last block, which would be cut. */
    if (table->length != LEAT_ENDLESS &&
        block.size > table->length - block.first)
        block.size = table->length - block.first;
    if (table->is_even)
        return block;
    bool is_cut = block.size < table->block;
    block.draw = (is_cut ? table->last : table->draw) +
                 choose_order(table, epoch, block.number) * block.size;
    return block;
}
