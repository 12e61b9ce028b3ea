#include "tools/database/checked_database.h"

#include "tools/database/database.h"

/* To read the last record, the index is made, by a walk over all pages. */
static int walk(leat_reader *reader, int64_t records)
{
    if (!records)
        return LEAT_OK;
    leat_sample sample, *out = &sample;
    leat_sample_init(&sample);
    int64_t last = records - 1;
    int got;
    int status = leat_reader_read_at(reader, &last, &out, 1, &got);
    leat_sample_finish(&sample);
    /* A bad Datum is copied as it is. */
    return status == LEAT_EDATA ? LEAT_OK : status;
}

int checked_database_open(leat_reader **out, const char *path, int64_t *records)
{
    leat_reader *reader;
    int status = database_open(&reader, path);
    if (status)
        return status;
    int64_t count;
    status = leat_reader_count(reader, &count);
    if (!status)
        status = walk(reader, count);
    if (status) {
        leat_reader_close(reader);
        return status;
    }
    *out = reader;
    *records = count;
    return LEAT_OK;
}
