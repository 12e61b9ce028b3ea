#include "layer/diagnose/waiting.h"
#include "base/log.h"
#include "layer/layer_state.h"

#include <stdio.h>

bool leat__waiting_is_logged(void)
{
    return leat__log_is_enabled(LEAT_LOG_INFO);
}

/* Whether it is time for another line, which is then counted. */
static bool is_due(leat__waiting *waiting, int64_t now)
{
    if (waiting->logged > 0 && now - waiting->logged < LEAT__WAITING_INTERVAL)
        return false;
    waiting->logged = now;
    return true;
}

static double seconds(int64_t nanoseconds)
{
    return (double)nanoseconds * 1e-9;
}

static void describe(leat_data_layer *layer, char *out, size_t size)
{
    const leat_data_layer_group *group = layer->group;
    leat__activity now = leat__prefetcher_activity(group->prefetcher);
    leat_reader *reader = leat__data_reader_reader(group->reader);
    switch (leat__activity_judge(&now, layer->number)) {
    case LEAT__BOTTLENECK_READER:
        snprintf(out, size, "the reader of %s is behind%s",
                 leat_pipeline_text(group->pipeline),
                 leat_reader_may_block(reader)
                     ? ", whose storage is cold or may block"
                     : "");
        return;
    case LEAT__BOTTLENECK_WORKERS:
        snprintf(out, size, "the workers are behind, %d of %d at work",
                 now.working, now.workers);
        return;
    case LEAT__BOTTLENECK_COPY:
        snprintf(out, size, "the copies to %s are behind", layer->device->name);
        return;
    case LEAT__BOTTLENECK_MEMBER:
        snprintf(out, size,
                 "%s on %s is behind: all its batches are made, and "
                 "it takes none",
                 group->member[now.out_of_batches].name,
                 group->device[now.out_of_batches]->name);
        return;
    case LEAT__BOTTLENECK_NOBODY:
        snprintf(out, size, "its threads do not get to run");
        return;
    }
}

void leat__waiting_on(leat_data_layer *layer, int64_t begin, int64_t now)
{
    char stage[256];
    if (!is_due(&layer->waiting, now))
        return;
    describe(layer, stage, sizeof(stage));
    leat__log(LEAT_LOG_INFO, "%s: waiting for data for %.1f s: %s", layer->name,
              seconds(now - begin), stage);
}

void leat__waiting_over(leat_data_layer *layer, int64_t now)
{
    leat__waiting *waiting = &layer->waiting;
    double waited = seconds(layer->waited) - waiting->then.waited;
    if (waited < seconds(LEAT__WAITING_PATIENCE) || !is_due(waiting, now))
        return;
    char verdict[LEAT_VERDICT_MAX];
    leat_stats stats = {.size = sizeof(stats)};
    (void)leat_data_layer_stats(layer, &stats);
    double span = stats.elapsed - waiting->then.elapsed;
    if (leat_stats_verdict(&stats, &waiting->then, verdict) == LEAT_OK)
        leat__log(LEAT_LOG_INFO,
                  "%s: waited for data %.1f s of the last %.1f s: %s",
                  layer->name, waited, span, verdict);
    waiting->then = stats;
}

void leat__waiting_for_copy(leat_data_layer *layer, int64_t begin, int64_t now)
{
    if (now - begin < LEAT__WAITING_PATIENCE || !is_due(&layer->waiting, now))
        return;
    leat__log(LEAT_LOG_INFO,
              "%s: waited for data %.1f s: the copies to %s are behind",
              layer->name, seconds(now - begin), layer->device->name);
}
