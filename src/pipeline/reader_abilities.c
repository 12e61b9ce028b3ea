/* What a reader can do, and what is known of it before it is read. */
#include "pipeline/pipeline.h"
#include "pipeline/reader_chain.h"
#include "pipeline/reader_state.h"

#include <stdbool.h>

int leat_reader_count(leat_reader *reader, int64_t *out)
{
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!LEAT__HAS(reader, count))
        return leat__reader_unsupported(reader,
                                        "count its samples before reading");
    unsigned lines = leat__error_lines();
    return leat__reader_check_status(reader, "count", lines,
                                     reader->ops->count(reader, out));
}

int leat_reader_parts(leat_reader *reader, const int64_t **first, int64_t *n)
{
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!LEAT__HAS(reader, parts))
        return leat__reader_unsupported(reader,
                                        "name the parts of its samples");
    unsigned lines = leat__error_lines();
    return leat__reader_check_status(reader, "parts", lines,
                                     reader->ops->parts(reader, first, n));
}

int leat_reader_is_random_access(const leat_reader *reader)
{
    return LEAT__HAS(reader, count) && LEAT__HAS(reader, read_at);
}

void leat__reader_set_random(leat_reader *reader)
{
    struct leat_reader_state *state = reader->state;
    if (leat__reader_is_random(reader) || !leat_reader_is_random_access(reader))
        return;
    atomic_store_explicit(&state->is_random, true, memory_order_relaxed);
    for (int i = 0; i < state->ninputs; i++)
        leat__reader_set_random(state->input[i]);
}

bool leat__reader_has_lasting_access(const leat_reader *reader)
{
    return reader->state->lasting_access;
}

int leat_reader_is_endless(leat_reader *reader)
{
    int64_t count;
    leat_reader *upstream = reader->state->upstream;
    if (LEAT__HAS(reader, is_endless))
        return reader->ops->is_endless(reader);
    if (!leat_reader_count(reader, &count))
        return count == LEAT_ENDLESS;
    return upstream && leat_reader_is_endless(upstream);
}

bool leat__reader_reads_once(const leat_reader *reader)
{
    return reader->state->reads_once;
}

int leat_reader_can_seek(leat_reader *reader)
{
    return LEAT__HAS(reader, can_seek) ? reader->ops->can_seek(reader) : 1;
}

int leat_reader_has_mark(const leat_reader *reader)
{
    return LEAT__HAS(reader, mark);
}

int leat_reader_may_block(leat_reader *reader)
{
    if (leat__reader_check_process(reader))
        return 0;
    if (LEAT__HAS(reader, may_block))
        return reader->ops->may_block(reader);
    return leat__pipeline_may_block(reader->pipeline);
}

bool leat__reader_can_probe(const leat_reader *reader)
{
    return LEAT__HAS(reader, may_block);
}
