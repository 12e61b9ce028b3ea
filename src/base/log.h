/* log.h: sends a line to the log function. */
#ifndef LEAT_BASE_LOG_H
#define LEAT_BASE_LOG_H

#include <leat/log.h>

#include <stdbool.h>

/* Whether lines of that level are delivered: check before costly ones. */
bool leat__log_is_enabled(leat_log_level level);

void leat__log(leat_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
