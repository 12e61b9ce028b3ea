#include "decorators/callable.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

void leat__callable_init(leat__callable *callable, const char *kind,
                         const char *name, void *user, uint64_t id)
{
    snprintf(callable->name, sizeof(callable->name), "%s", name ? name : kind);
    callable->user = user;
    callable->id = id;
}

void leat__callable_release(void *object)
{
    const leat__callable *callable = object;
    if (callable->release)
        callable->release(callable->user);
    leat__free(object);
}

uint64_t leat__callable_id(const void *object)
{
    return ((const leat__callable *)object)->id;
}

void leat__callable_cancel(const leat__callable *callable)
{
    if (callable->cancel)
        callable->cancel(callable->user);
}

void leat__call_begin(leat__call *call, leat_sample *sample, int first)
{
    call->lines = leat__error_lines();
    call->first = first;
    if (first == 0)
        return;
    size_t own = (size_t)(sample->nfields - first);
    memcpy(call->before, sample->field, (size_t)first * sizeof(leat_field));
    memmove(sample->field, sample->field + first, own * sizeof(leat_field));
    sample->nfields = (int)own;
    call->buffer = sample->buffer;
    call->buffer_size = sample->buffer_size;
}

/* The hidden views move with the buffer. False: there are too many fields. */
static bool restore(const leat__call *call, leat_sample *sample)
{
    int first = call->first, own = sample->nfields;
    if (own < 0 || own > LEAT_MAX_FIELDS - first)
        own = 0;
    memmove(sample->field + first, sample->field,
            (size_t)own * sizeof(leat_field));
    memcpy(sample->field, call->before, (size_t)first * sizeof(leat_field));
    for (int i = 0; i < first; i++) {
        const void **data = &sample->field[i].data;
        uintptr_t offset = (uintptr_t)*data - (uintptr_t)call->buffer;
        if (call->buffer && offset < call->buffer_size)
            *data = (const char *)sample->buffer + offset;
    }
    bool fits = own == sample->nfields;
    sample->nfields = first + own;
    return fits;
}

static int check_status(const leat__call *call, const leat__callable *callable,
                        int status, bool may_end)
{
    if (!status || (status == LEAT_END && may_end))
        return status;
    if (status == LEAT_END)
        return leat_error(LEAT_ESTATE,
                          "%s: the function returned LEAT_END: expected the "
                          "option may_end",
                          callable->name);
    if (!leat__status_is_error(status))
        return leat_error(LEAT_ESTATE,
                          "%s: the function returned %d: expected LEAT_OK or "
                          "an error of leat/status.h",
                          callable->name, status);
    if (leat__error_lines() != call->lines)
        return status;
    return leat_error(status, "%s: the function gave no reason: %s",
                      callable->name, leat_status_text(status));
}

int leat__call_end(const leat__call *call, const leat__callable *callable,
                   const leat__decorator *decorator, leat_sample *sample,
                   int status, bool may_end)
{
    bool fits = call->first == 0 || restore(call, sample);
    status = check_status(call, callable, status, may_end);
    if (status && leat__decorator_check_running(decorator))
        return LEAT_ECANCELLED;
    if (!status && !fits)
        return leat_error(LEAT_EDATA, "%s: a sample has too many fields",
                          callable->name);
    return status;
}
