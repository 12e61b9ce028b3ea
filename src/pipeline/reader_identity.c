/* What tells a reader's data from other data, and from what they were. */
#include "pipeline/reader_chain.h"
#include "pipeline/reader_state.h"

/*
 * Whether this thread is in leat_reader_identify. A decorator's save calls
 * those of its upstream readers on the same thread, so that each of them is
 * asked for its revision as well, and no decorator has to know.
 */
static _Thread_local bool identifies;

int leat_reader_save(leat_reader *reader, leat_token *token)
{
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!LEAT__HAS(reader, save))
        return leat__reader_unsupported(reader, "save its state");
    unsigned lines = leat__error_lines();
    status = leat__reader_check_operation(reader, "save", lines,
                                          reader->ops->save(reader, token));
    if (status || !identifies || !LEAT__HAS(reader, revision))
        return status;
    lines = leat__error_lines();
    return leat__reader_check_operation(reader, "revision", lines,
                                        reader->ops->revision(reader, token));
}

int leat_reader_identify(leat_reader *reader, leat_token *token)
{
    bool outer = identifies;
    identifies = true;
    int status = leat_reader_save(reader, token);
    identifies = outer;
    return status;
}

int leat_reader_check(leat_reader *reader)
{
    leat_reader *upstream = reader->state->upstream;
    int status = leat__reader_check_process(reader);
    if (status)
        return status;
    if (!LEAT__HAS(reader, check))
        return upstream ? leat_reader_check(upstream) : LEAT_OK;
    unsigned lines = leat__error_lines();
    return leat__reader_check_operation(reader, "check", lines,
                                        reader->ops->check(reader));
}
