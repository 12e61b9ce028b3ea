/*
 * reader_form.h: the form of a mark, which is what its bytes are of.
 *
 * A mark has no names: each reader of a chain takes what it wrote. What that is
 * depends on what the readers can, and a chain of the same text need not always
 * be able to do the same: over a directory that `cache` has made there is
 * random access, and the position is enough, while before it was there the mark
 * was that of the stream. So a mark begins with its form, and one of another
 * form is refused: the position can always be found by reading.
 */
#ifndef LEAT_PIPELINE_READER_FORM_H
#define LEAT_PIPELINE_READER_FORM_H

#include "pipeline/reader_state.h"

/* The form of a reader's marks, never 0; those of its upstream readers are in
 * them. */
uint64_t leat__reader_form(leat_reader *reader, leat_reader *const upstream[],
                           int n);

/* Appends it, where a mark begins; an upstream reader's mark is a part. */
int leat__reader_put_form(const leat_reader *reader, leat_token *token);

/* Takes it. LEAT_EINVAL for another one. */
int leat__reader_take_form(const leat_reader *reader, leat_token *mark);

#endif
