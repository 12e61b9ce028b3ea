/*
 * decorator.h: what decorators share: their upstream readers, and the
 * operations that only pass a call on to them.
 */
#ifndef LEAT_DECORATORS_DECORATOR_H
#define LEAT_DECORATORS_DECORATOR_H

#include <leat/ext/reader.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of every decorator's own struct. */
typedef struct leat__decorator {
    leat_reader reader;     /* first */
    atomic_bool cancelled;  /* for good */
    int nupstream;          /* immutable, as the array is */
    leat_reader **upstream; /* the decorator's own once open succeeds */
} leat__decorator;

/*
 * Allocates a zeroed decorator of `size` bytes, which begins with a
 * leat__decorator, over the upstream readers of `open`. Freed by
 * leat__decorator_close; after a failure of open, when the caller keeps the
 * upstream readers, by leat__free. NULL without memory.
 */
void *leat__decorator_new(const leat_open *open, const leat_reader_ops *ops,
                          size_t size);

/* LEAT_ECANCELLED, with a line, after cancel. */
int leat__decorator_check_running(const leat__decorator *decorator);

/* What a reader answered to leat_reader_may_block. One caller at a time. */
typedef struct leat__block_probe {
    int left;        /* samples for which the answer stands */
    unsigned opened; /* pipes, as it was asked for */
    bool blocks;
} leat__block_probe;

/*
 * leat_reader_may_block, after `n` more samples: asked rarely, as it may probe
 * every file that is read.
 */
bool leat__block_probe_ask(leat__block_probe *probe, leat_reader *reader,
                           int n);

/*
 * Ends every answer, after a reader of a pipe or device has become one of those
 * that are asked. Any thread.
 */
void leat__block_probe_expire(void);

/*
 * Operations. fields, seek and mark are the first upstream reader's; the
 * others are those of all.
 */
int leat__decorator_fields(leat_reader *reader, const leat_field_spec **out,
                           int *n);
int leat__decorator_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got);
int leat__decorator_seek(leat_reader *reader, leat_position position,
                         leat_token *mark);
int leat__decorator_mark(leat_reader *reader, leat_token *token);
void leat__decorator_cancel(leat_reader *reader);
void leat__decorator_close(leat_reader *reader);
int leat__decorator_can_seek(leat_reader *reader);
int leat__decorator_save(leat_reader *reader, leat_token *token);
int leat__decorator_restore(leat_reader *reader, leat_token *token);
int leat__decorator_may_block(leat_reader *reader);
int leat__decorator_check(leat_reader *reader);

/* is_endless where the samples of each upstream reader come, or none follows
 * the end of the first that ends. */
int leat__decorator_is_any_endless(leat_reader *reader);
int leat__decorator_are_all_endless(leat_reader *reader);

#endif
