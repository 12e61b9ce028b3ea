#include "support/empty_reader.h"

int empty_reader_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    static const leat_field_spec nothing = {.name = "nothing"};
    (void)reader;
    *out = &nothing;
    *n = 1;
    return LEAT_OK;
}

int empty_reader_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    (void)reader;
    (void)out;
    (void)n;
    *got = 0;
    return LEAT_END;
}

int empty_reader_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    (void)reader;
    (void)position;
    (void)mark;
    return LEAT_OK;
}

void empty_reader_cancel(leat_reader *reader)
{
    (void)reader;
}
