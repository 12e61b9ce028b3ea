/*
 * turns.h: the order of an interleave whose inputs' lengths are known.
 *
 * DESIGN. In a round each slot with an input has its turn, of `block` samples.
 * An input ends in the turn that gives fewer, none included, and another one
 * takes its slot for the next round. Rounds in which all turns are full follow
 * each other until an input ends: they are one segment. A round in which one
 * ends is a segment of its own. So a position is found by a search among
 * segments and two divisions, and the next one without either.
 */
#ifndef LEAT_DECORATORS_INTERLEAVE_TURNS_H
#define LEAT_DECORATORS_INTERLEAVE_TURNS_H

#include <stddef.h>
#include <stdint.h>

/* A turn of each of a segment's rounds. */
typedef struct leat__turn {
    int64_t index;  /* of the input's sample that the first round begins with */
    int64_t before; /* samples of the round before it */
    int input;
} leat__turn;

typedef struct leat__turn_segment {
    int64_t first; /* sample of all */
    int64_t size;  /* samples of a round */
    int64_t rounds;
    size_t turn; /* of its turns, the first */
    int nturns;
} leat__turn_segment;

typedef struct leat__turns {
    int64_t count; /* LEAT_ENDLESS: without an end */
    int64_t block;
    leat__turn_segment *segment;
    size_t nsegments, segment_room;
    leat__turn *turn;
    size_t nturns, turn_room;
} leat__turns;

/* A sample's place; zeroed: none. */
typedef struct leat__turn_cursor {
    const leat__turn_segment *segment;
    int64_t at; /* the sample */
    int64_t round;
    int turn;
    int64_t in_turn; /* of left + in_turn samples of the turn */
    int64_t left;    /* after this one */
} leat__turn_cursor;

/* More turns in all are not planned: 24 bytes each. */
#define LEAT__TURNS_MAX ((size_t)1 << 20)

/*
 * Plans the turns of `n` inputs of these counts. Errors: LEAT_ENOMEM;
 * LEAT_ELIMIT for more than LEAT__TURNS_MAX turns.
 */
int leat__turns_create(leat__turns **out, const int64_t count[], int n,
                       int cycle, int64_t block);
void leat__turns_destroy(leat__turns *turns);

/* The input of sample `at`, and its *index there. */
int leat__turns_find(const leat__turns *turns, leat__turn_cursor *cursor,
                     int64_t at, int64_t *index);

#endif
