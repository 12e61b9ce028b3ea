#include "readers/record/record_format.h"
#include "base/error.h"
#include "base/memory.h"

void leat__record_format_destroy(leat__record_format *format)
{
    if (format && format->ops->destroy)
        format->ops->destroy(format);
    else
        leat__free(format);
}

void *leat__record_take(leat_sample *sample, leat__record_window *window,
                        size_t bytes)
{
    uintptr_t at = (uintptr_t)window->bytes - (uintptr_t)sample->buffer;
    bool is_inside = sample->taken > 0 && at < sample->taken;
    void *taken = leat_sample_take(sample, bytes);
    sample->stable = 0;
    if (taken && is_inside)
        window->bytes = (const unsigned char *)sample->buffer + at;
    return taken;
}

int leat__record_too_many(void)
{
    return leat_error(LEAT_EINVAL,
                      "a record's fields are added to a sample of others: "
                      "expected at most %d in sum",
                      LEAT_MAX_FIELDS);
}
