/*
 * carry_chain.h: the last good sample of each chunk, handed on to the next one.
 *
 * A bad record may be replaced by the good one before it, and that may be in
 * the chunk before, which another thread works on. So each chunk takes a carry
 * from the chunk before it and hands one on.
 */
#ifndef LEAT_LAYER_ON_ERROR_CARRY_CHAIN_H
#define LEAT_LAYER_ON_ERROR_CARRY_CHAIN_H

#include "layer/batch.h"
#include "layer/chunk.h"

/* What the last sample of a chunk was filled with. */
typedef enum leat__carry_state {
    LEAT__CARRY_OPEN = 0, /* the chunk is in work */
    LEAT__CARRY_RECORD,   /* `sample`, which was good in a batch of `shape` */
    LEAT__CARRY_NONE,     /* nothing: no record so far was good in `shape`;
                             with no tops in it: there was no record at all */
    LEAT__CARRY_UNKNOWN   /* it lies before this start of the layer, or in a gap
                           */
} leat__carry_state;

/* What reading back from a batch's first sample found, for later batches. */
typedef struct leat__carry_look {
    bool is_known;
    bool is_found;
    int64_t epoch; /* the place of that sample */
    int64_t index;
    int64_t found_epoch; /* of the nearest good record before that place */
    leat__batch_shape shape;
} leat__carry_look;

typedef struct leat__carry {
    leat__carry_state
        state;           /* protected by the carry chain's lock while open */
    bool is_mixed;       /* after `sample` came records of other shapes */
    leat_sample *sample; /* owned; the record, or an empty buffer */
    int64_t epoch;       /* of the record */
    leat__batch_shape shape;
    leat__carry_look look; /* the latest that is known of */
    int holders; /* protected by the carry chain's lock: of the two chunks, how
                    many still need it */
} leat__carry;

typedef struct leat__carry_chain leat__carry_chain;

/*
 * For at most `chunks` chunks in work at a time; `begin` is the state before
 * the first one: NONE or UNKNOWN. The samples' buffers come from `buffers`
 * (borrowed; NULL: malloc). Errors: LEAT_ENOMEM, LEAT_EIO.
 */
int leat__carry_chain_create(leat__carry_chain **out, int chunks,
                             const leat_allocator *buffers,
                             leat__carry_state begin);
void leat__carry_chain_destroy(leat__carry_chain *chain); /* takes NULL */

/*
 * Gives a chunk its two carries; after a gap nothing is handed on to it. One
 * caller at a time, in the order of chunks.
 */
void leat__carry_chain_enter(leat__carry_chain *chain, leat__chunk *chunk);

/*
 * Waits for the carry that the chunk takes: until all chunks before it are
 * through, which never wait for one after them.
 */
const leat__carry *leat__carry_chain_await(leat__carry_chain *chain,
                                           const leat__chunk *chunk);

/* The chunk is through: its own carry is filled, but for `state`. */
void leat__carry_chain_leave(leat__carry_chain *chain, leat__chunk *chunk,
                             leat__carry_state state);

#endif
