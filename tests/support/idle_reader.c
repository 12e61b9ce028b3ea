#include "support/idle_reader.h"

int idle_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    static const leat_field_spec nothing = {.name = "nothing"};
    (void)reader;
    *out = &nothing;
    *n = 1;
    return LEAT_OK;
}

int idle_next(leat_reader *reader, leat_sample *const out[], int n, int *got)
{
    (void)reader;
    (void)out;
    (void)n;
    *got = 0;
    return LEAT_END;
}

int idle_reset(leat_reader *reader)
{
    (void)reader;
    return LEAT_OK;
}

void idle_cancel(leat_reader *reader)
{
    (void)reader;
}
