#include "layer/on_error/failure.h"

#include <stdbool.h>
#include <stdio.h>

void leat__failure_note(leat__failure *failure, int sample, int status,
                        const char *line)
{
    bool is_late = failure->status && failure->sample <= sample;
    if (status == LEAT_EDATA || is_late)
        return;
    failure->sample = sample;
    failure->status = status;
    snprintf(failure->line, sizeof(failure->line), "%s", line);
}
