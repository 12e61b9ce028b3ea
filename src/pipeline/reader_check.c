#include "base/error.h"
#include "pipeline/reader_state.h"

int leat__reader_check_status(const leat_reader *reader, const char *operation,
                              unsigned lines, int status)
{
    if (!status || status == LEAT_END)
        return status;
    if (!leat__status_is_error(status))
        return leat_error(
            LEAT_ESTATE,
            "the reader \"%s\": %s returned %d, expected LEAT_OK, "
            "LEAT_END or an error of leat/status.h",
            reader->ops->name, operation, status);
    if (leat__error_lines() == lines)
        return leat_error(status, "the reader \"%s\": %s", reader->ops->name,
                          leat_status_text(status));
    return status;
}

int leat__reader_check_operation(const leat_reader *reader,
                                 const char *operation, unsigned lines,
                                 int status)
{
    status = leat__reader_check_status(reader, operation, lines, status);
    return status == LEAT_EDATA ? LEAT_EFORMAT : status;
}

int leat__reader_refuse_end(const leat_reader *reader, const char *operation,
                            int status)
{
    return status == LEAT_END
               ? leat_error(LEAT_ESTATE,
                            "the reader \"%s\": %s returned LEAT_END",
                            reader->ops->name, operation)
               : status;
}

int leat__reader_unsupported(const leat_reader *reader, const char *what)
{
    return leat_error(LEAT_EUNSUPPORTED, "the reader \"%s\" cannot %s",
                      reader->ops->name, what);
}

/* The error of a bad record without a line; `from` names it. */
static int name_record(const leat_reader *reader, const leat_provenance *from)
{
    return leat_error(
        LEAT_EDATA, "the reader \"%s\": record %lld is bad; it gave no reason",
        reader->ops->name, (long long)from->record);
}

int leat__reader_bad_sample(const leat_reader *reader, leat_sample *const out[],
                            int *got)
{
    int i = 0;
    while (i < *got - 1 && (out[i]->deferred ||
                            (unsigned)out[i]->nfields - 1 < LEAT_MAX_FIELDS))
        i++;
    *got = 0;
    return leat_error(LEAT_ESTATE,
                      "the reader \"%s\" gave a sample of %d fields "
                      "(nfields), expected 1 to %d",
                      reader->ops->name, out[i]->nfields, LEAT_MAX_FIELDS);
}

int leat__reader_check_count(const leat_reader *reader, const char *operation,
                             unsigned lines, int status,
                             leat_sample *const out[], int n, int *got)
{
    int reported = *got;
    if (!status && reported >= 1 && reported <= n)
        return LEAT_OK;
    if (reported < 0 || reported > n || !status) {
        *got = 0;
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\": %s reports %d samples, "
                          "expected 1 to %d",
                          reader->ops->name, operation, reported, n);
    }
    if (reported == n && status != LEAT_END) {
        *got = 0;
        return leat_error(LEAT_ESTATE,
                          "the reader \"%s\": %s reports all %d samples "
                          "together with an error, which concerns none",
                          reader->ops->name, operation, n);
    }
    if (status == LEAT_EDATA && leat__error_lines() == lines)
        return name_record(reader, &out[reported]->from);
    return leat__reader_check_status(reader, operation, lines, status);
}

int leat__reader_check_samples(const leat_reader *reader, int status,
                               leat_sample *const out[], int *got,
                               int *deferred)
{
    bool is_bad = false;
    *deferred = 0;
    for (int i = 0; i < *got; i++) {
        if (out[i]->deferred)
            ++*deferred;
        else
            is_bad |= (unsigned)out[i]->nfields - 1 >= LEAT_MAX_FIELDS;
    }
    return is_bad ? leat__reader_bad_sample(reader, out, got) : status;
}
