/* progress.h: a bar on a terminal's stderr: share, rate, time left. */
#ifndef LEAT_TOOLS_CLI_PROGRESS_H
#define LEAT_TOOLS_CLI_PROGRESS_H

#include <leat/status.h>

#include <stdbool.h>

struct progress {
    const char *unit; /* "records" */
    int64_t total;    /* below 0: unknown */
    int64_t skipped;  /* done before it started */
    double started;   /* seconds */
    double drawn;     /* when the bar was last drawn */
    bool shown;       /* 0: stderr is no terminal, or the bar is not wanted */
};

/* Starts a bar; a silent one with `quiet` and where stderr is no terminal. */
void progress_start(struct progress *progress, const char *unit, int64_t total,
                    bool quiet);

/* So many were done by an earlier run: the rate is without them. */
void progress_skip(struct progress *progress, int64_t done);

/* `done` of the total are done. Cheap: draws ten times a second at most. */
void progress_update(struct progress *progress, int64_t done);

/* Wipes the bar, until the next update, where stdout is a terminal too: a line
   is about to be printed there. */
void progress_clear(const struct progress *progress);

/* Wipes the bar. Returns the seconds since the start. */
double progress_finish(struct progress *progress);

#endif
