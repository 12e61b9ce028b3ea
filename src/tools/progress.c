#include "tools/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double draw_interval = 0.1;

double progress_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_start(struct progress *progress, const char *unit, int64_t total,
                    int quiet)
{
    progress->unit = unit;
    progress->total = total;
    progress->skipped = 0;
    progress->started = progress_clock();
    progress->drawn = progress->started;
    progress->shown = !quiet && isatty(STDERR_FILENO);
}

void progress_skip(struct progress *progress, int64_t done)
{
    progress->skipped = done;
}

static void draw_bar(const struct progress *progress, double share, double rate,
                     double left)
{
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %3.0f %%  %.0f %s/s  %.0f s left\033[K", bar,
            100 * share, rate, progress->unit, left);
}

void progress_update(struct progress *progress, int64_t done)
{
    if (!progress->shown)
        return;
    double now = progress_clock();
    if (now - progress->drawn < draw_interval)
        return;
    progress->drawn = now;
    double rate =
        (double)(done - progress->skipped) / (now - progress->started);
    if (progress->total > 0 && rate > 0)
        draw_bar(progress, (double)done / (double)progress->total, rate,
                 (double)(progress->total - done) / rate);
    else
        fprintf(stderr, "\r%lld %s  %.0f %s/s\033[K", (long long)done,
                progress->unit, rate, progress->unit);
}

double progress_finish(struct progress *progress)
{
    if (progress->shown)
        fprintf(stderr, "\r\033[K");
    progress->shown = 0;
    return progress_clock() - progress->started;
}
