/* mix.h: what the two forms of mix share. */
#ifndef LEAT_DECORATORS_MIX_MIX_H
#define LEAT_DECORATORS_MIX_MIX_H

#include "decorators/field_list.h"
#include "decorators/index_map.h"
#include "decorators/mix/draw_table.h"

#include <leat/decorators.h>

#include <stdbool.h>

/* The most inputs, and the most where one of them is a stream. */
enum { LEAT__MIX_MAX = 256, LEAT__MIX_STREAMS_MAX = 32 };

/* Draws from the inputs that are left, until one of them ends. */
typedef struct leat__mix_phase {
    leat__draw_table *table;
    bool ended[LEAT__MIX_MAX]; /* inputs that are not drawn */
    /* By index: */
    int64_t first;               /* of its draws, in the epoch */
    int64_t base[LEAT__MIX_MAX]; /* samples of each input before */
} leat__mix_phase;

/* An input of a stream. */
typedef struct leat__mix_input {
    int64_t index; /* of its next sample, in its pass */
    int64_t pass;  /* how often it was begun again */
    bool has_ended;
} leat__mix_input;

typedef struct leat__mix {
    leat__index_map map; /* first; over a stream next.epoch is used alone */
    leat_mix_end on_end;
    bool is_even;
    uint64_t seed;
    int64_t weight[LEAT__MIX_MAX];
    leat__field_list fields;
    int nphases;
    leat__mix_phase *phase[LEAT__MIX_MAX];
    atomic_int_fast64_t bytes;    /* of the phases */
    int64_t count[LEAT__MIX_MAX]; /* by index: samples of each input */
    /* Over a stream: */
    leat__mix_input *input;
    int at_phase;
    int64_t at; /* the next draw of that phase */
    leat__draw_block block;
} leat__mix;

extern const leat_reader_ops leat__mix_stream_ops;

int leat__mix_fields(leat_reader *reader, const leat_field_spec **out, int *n);
int64_t leat__mix_memory(leat_reader *reader);
void leat__mix_close(leat_reader *reader);

/* The upstream readers', and which form it is: an epoch's length differs. */
int leat__mix_save(leat_reader *reader, leat_token *token);
/* LEAT_EINVAL: what was saved is of the other form. */
int leat__mix_restore(leat_reader *reader, leat_token *token);

/* Adds a phase in which inputs are left out. Errors: those of draw tables. */
int leat__mix_add_phase(leat__mix *mix, const bool ended[]);

/* The epoch that an input begins its pass `pass` of an epoch as. */
int64_t leat__mix_pass_epoch(int64_t epoch, int64_t pass);

/* LEAT_EFORMAT: an input without a sample cannot be begun again. */
int leat__mix_empty(const leat__mix *mix, int i);

#endif
