/*
 * draw_table.h: which input each sample of a mixture comes from.
 *
 * DESIGN. Weights are whole numbers whose sum is the period. Over a period each
 * input is drawn as often as it weighs, and at every place within one of its
 * weight (R. Tijdeman, "The chairman assignment problem", 1980): this is the
 * even order, and repeats. The random order has the same draws in blocks of
 * whole periods, 256 draws or the next multiple, each in one of some orders
 * that are made in advance; the block, the epoch and the seed choose among
 * them. So any draw is found by a division and a look into a table, and counts
 * are exact at the end of each block. A last block that is cut has orders of
 * its own, so that the length of an epoch is that of the even order, too.
 */
#ifndef LEAT_DECORATORS_MIX_DRAW_TABLE_H
#define LEAT_DECORATORS_MIX_DRAW_TABLE_H

#include <leat/status.h>

#include <stdbool.h>

/* A draw, and how many of this input are before it in the same block. */
typedef struct leat__draw {
    uint32_t rank;
    uint16_t input;
} leat__draw;

typedef struct leat__draw_table {
    int n;            /* inputs */
    int64_t *weight;  /* of each */
    int64_t period;   /* their sum */
    leat__draw *even; /* the even order of a period */
    bool is_even;     /* the blocks are such periods */
    int64_t block;    /* draws of a block */
    int64_t periods;  /* in a block */
    int64_t length;   /* draws until the end; LEAT_ENDLESS: no end */
    int orders;       /* of a block */
    uint64_t seed;    /* of the choice among them */
    leat__draw *draw; /* orders x block; NULL for the even order */
    leat__draw *last; /* orders x (length % block); NULL: no such block */
    size_t bytes;     /* of all that */
} leat__draw_table;

/* Draws of a block. */
typedef struct leat__draw_block {
    int64_t number; /* -1: none yet */
    int64_t epoch;
    int64_t first; /* of its draws, in the sequence */
    int64_t size;  /* draws */
    const leat__draw *draw;
} leat__draw_block;

/*
 * Makes a table for inputs of these weights, of which 0 is not drawn; in an
 * even order, or by `seed`. Errors: LEAT_EINVAL for weights whose period is
 * above LEAT__PERIOD_MAX, LEAT_ENOMEM.
 */
#define LEAT__PERIOD_MAX 1000000
int leat__draw_table_create(leat__draw_table **out, const int64_t weight[],
                            int n, bool is_even, uint64_t seed);
void leat__draw_table_destroy(leat__draw_table *table);

/* Where the even order draws input `i` for the time `number`, from 0;
 * LEAT_ENDLESS where numbers end. */
int64_t leat__draw_table_find(const leat__draw_table *table, int i,
                              int64_t number);

/* How often input `i` is among the first `length` draws of the even order. */
int64_t leat__draw_table_count(const leat__draw_table *table, int i,
                               int64_t length);

/* Ends the table after `length` draws. LEAT_ENOMEM. */
int leat__draw_table_end(leat__draw_table *table, int64_t length);

/* The block of draw `at` in an epoch, from 0. */
leat__draw_block leat__draw_table_block(const leat__draw_table *table,
                                        int64_t epoch, int64_t at);

#endif
