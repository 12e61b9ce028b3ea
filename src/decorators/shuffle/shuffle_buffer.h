/*
 * shuffle_buffer.h: a buffer that samples are drawn from.
 *
 * DESIGN
 *
 * Each position draws a slot (shuffle_draws.h), gives its sample, and the next
 * input takes the slot; after the last input the buffer runs empty. An input
 * is read straight into the caller's sample, which is then exchanged with the
 * slot: nothing is copied. A bad record takes a slot like any other, with its
 * error's line as a field, and is returned where it is drawn.
 *
 * What the buffer holds at a position follows from the draws, so a resume takes
 * the position and, once it is known, the number of inputs. The samples are
 * found by their indices where the upstream reader finds these; else they are
 * read again from a mark that was taken before the oldest of them.
 *
 * All is of one caller at a time, but for `memory`.
 */
#ifndef LEAT_DECORATORS_SHUFFLE_SHUFFLE_BUFFER_H
#define LEAT_DECORATORS_SHUFFLE_SHUFFLE_BUFFER_H

#include "decorators/decorator.h"
#include "decorators/shuffle/shuffle.h"
#include "decorators/shuffle/shuffle_draws.h"
#include "decorators/shuffle/shuffle_marks.h"
#include "decorators/shuffle/shuffle_slots.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Samples read in one go while the buffer is filled. */
enum { LEAT__SHUFFLE_AT_ONCE = 16 };

typedef struct leat__shuffle_buffer {
    leat__decorator decorator;
    leat__shuffle_options options;
    int64_t max_memory;              /* 0: no limit */
    const leat_allocator *allocator; /* of samples, borrowed */
    int64_t count;                   /* of the upstream reader; -1: unknown */
    bool finds;                      /* it goes to every index */
    leat_position next;              /* what is given next */
    bool is_filled;                  /* as far as there are inputs */
    bool has_ended;                  /* there are no more inputs than `taken` */
    int64_t taken;                   /* inputs of this epoch */
    leat__shuffle_draws draws;
    leat__shuffle_slots slots;
    leat__shuffle_marks marks; /* of a stream that finds no index */
    leat_sample scratch[LEAT__SHUFFLE_AT_ONCE];
    leat_sample *into[LEAT__SHUFFLE_AT_ONCE]; /* these */
    atomic_int_fast64_t memory;               /* any thread reads it */
} leat__shuffle_buffer;

static inline leat__shuffle_buffer *leat__shuffle_buffer_of(leat_reader *reader)
{
    return (leat__shuffle_buffer *)reader;
}

static inline leat_reader *
leat__shuffle_upstream(const leat__shuffle_buffer *buffer)
{
    return buffer->decorator.upstream[0];
}

/* The buffer's slots, once the fields of its samples are known. */
int leat__shuffle_make_slots(leat__shuffle_buffer *buffer);

/* Empties the scratch samples. */
void leat__shuffle_clear_scratch(leat__shuffle_buffer *buffer);

/* Keeps the line of the error that a record has, as its only field. */
int leat__shuffle_keep_line(leat_sample *sample);

/*
 * A slot has room for as many fields as were promised. A deferred sample has
 * those of the reader that deferred it, which may be more. LEAT_ESTATE,
 * LEAT_ENOMEM.
 */
int leat__shuffle_check_fields(leat__shuffle_buffer *buffer,
                               const leat_sample *sample);

/* Notes what memory the buffer takes; LEAT_ELIMIT: more than it may. */
void leat__shuffle_note_memory(leat__shuffle_buffer *buffer);
int leat__shuffle_check_memory(leat__shuffle_buffer *buffer);

/* A line of the log every 10 s. */
void leat__shuffle_report_filling(int32_t done, int32_t all, int64_t *last);

/* Begins an epoch, whose inputs the upstream reader gives next. */
void leat__shuffle_begin_epoch(leat__shuffle_buffer *buffer, int64_t epoch);

/* Operations of positions. */
int leat__shuffle_buffer_seek(leat_reader *reader, leat_position position,
                              leat_token *mark);
int leat__shuffle_buffer_mark(leat_reader *reader, leat_token *token);
int leat__shuffle_buffer_can_seek(leat_reader *reader);
int leat__shuffle_buffer_count(leat_reader *reader, int64_t *out);
int leat__shuffle_buffer_restore(leat_reader *reader, leat_token *token);

#endif
