#include "readers/record/record_limit.h"
#include "base/error.h"

/* Less than a first window would be no less memory. */
#define LIMIT_MIN ((uint64_t)64 << 10)

leat__record_limit leat__record_limit_of(const leat_open *open)
{
    leat__record_limit limit = {
        .max_record = (uint64_t)leat_args_number(open->args, "max_record"),
        .max_memory = open->max_memory};
    uint64_t room = (uint64_t)limit.max_memory;
    if (room == 0)
        room = UINT64_MAX;
    else if (room < LIMIT_MIN)
        room = LIMIT_MIN;
    limit.bytes = limit.max_record < room ? limit.max_record : room;
    return limit;
}

int leat__record_limit_refuse(const leat__record_limit *limit, int status,
                              uint64_t bytes, const char *when)
{
    if (limit->bytes < limit->max_record)
        return leat_error(LEAT_ELIMIT,
                          "it has %llu bytes%s, but max_memory is %lld: "
                          "expected a larger one",
                          (unsigned long long)bytes, when,
                          (long long)limit->max_memory);
    return leat_error(status,
                      "it has %llu bytes%s, and max_record is %llu: give "
                      "another max_record= to read it",
                      (unsigned long long)bytes, when,
                      (unsigned long long)limit->max_record);
}
