#include "tools/cli/progress.h"

#include "base/clock.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double draw_interval = 0.1;

void progress_start(struct progress *progress, const char *unit, int64_t total,
                    bool quiet)
{
    progress->unit = unit;
    progress->total = total;
    progress->skipped = 0;
    progress->started = leat__clock_seconds();
    progress->drawn = progress->started;
    progress->shown = !quiet && isatty(STDERR_FILENO);
}

void progress_skip(struct progress *progress, int64_t done)
{
    progress->skipped = done;
}

/* The terminal's width, which may change at any time. */
static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
        return 80;
    return size.ws_col;
}

/*
 * A line that wrapped could not be drawn over: on a narrow terminal the bar
 * gets shorter, and parts that leave it no room are omitted.
 */
static void draw_bar(const struct progress *progress, double share, double rate,
                     double left)
{
    enum { WIDTH = 30, LEAST_WIDTH = 10, PARTS = 2 };
    char bar[WIDTH + 1], text[160], part[PARTS][64];
    int room = terminal_columns() - 1 - (int)strlen("[]");
    snprintf(text, sizeof(text), " %3.0f %%", 100 * share);
    snprintf(part[0], sizeof(part[0]), "  %s %s/s", output_scaled(rate),
             progress->unit);
    snprintf(part[1], sizeof(part[1]), "  %.0f s left", left);
    for (int i = 0; i < PARTS; i++)
        if ((int)(strlen(text) + strlen(part[i])) + LEAST_WIDTH <= room)
            strcat(text, part[i]);
    room -= (int)strlen(text);
    int width = room < WIDTH ? room : WIDTH;
    for (int i = 0; i < width; i++)
        bar[i] = i < (int)(share * width) ? '#' : '.';
    bar[width < 0 ? 0 : width] = 0;
    fprintf(stderr, "\r[%s]%s\033[K", bar, text);
}

void progress_update(struct progress *progress, int64_t done)
{
    if (!progress->shown)
        return;
    double now = leat__clock_seconds();
    if (now - progress->drawn < draw_interval)
        return;
    progress->drawn = now;
    double rate =
        (double)(done - progress->skipped) / (now - progress->started);
    interrupt_begin_message();
    if (progress->total > 0 && rate > 0)
        draw_bar(progress, (double)done / (double)progress->total, rate,
                 (double)(progress->total - done) / rate);
    else
        fprintf(stderr, "\r%lld %s  %s %s/s\033[K", (long long)done,
                progress->unit, output_scaled(rate), progress->unit);
    interrupt_end_message();
}

static void wipe_bar(const struct progress *progress)
{
    if (!progress->shown)
        return;
    interrupt_begin_message();
    fprintf(stderr, "\r\033[K");
    interrupt_end_message();
}

void progress_clear(const struct progress *progress)
{
    if (isatty(STDOUT_FILENO))
        wipe_bar(progress);
}

double progress_finish(struct progress *progress)
{
    wipe_bar(progress);
    progress->shown = false;
    return leat__clock_seconds() - progress->started;
}
