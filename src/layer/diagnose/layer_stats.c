/* What the layer did so far, in numbers. */
#include "base/cancel.h"
#include "base/clock.h"
#include "layer/layer_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * File pages resident in this process, in bytes; 0 where that is unknown. A
 * stream would take memory, and the log asks in the steady state.
 */
static int64_t mapped_bytes(void)
{
    char text[256];
    int cancel = leat__cancel_disable();
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd); /* Read-only: nothing is lost if it fails. */
    leat__cancel_restore(cancel);
    text[n > 0 ? n : 0] = 0;
    long long total;
    long long resident;
    long long shared = 0;
    if (sscanf(text, "%lld %lld %lld", &total, &resident, &shared) != 3)
        shared = 0;
    return shared * sysconf(_SC_PAGESIZE);
}

/* A reader alone is what the stage measures, less what it waited. */
static void add_readers(leat_stats *all, leat_reader *reader)
{
    leat_reader_stats *first = &all->reader[0];
    const leat_stage_stats *stage = &all->stage[0];
    all->nreaders = leat_reader_chain_stats(reader, all->reader);
    for (int i = 0; i < all->nreaders; i++)
        all->memory.readers += all->reader[i].memory;
    if (all->nreaders > 1)
        return;
    first->items = stage->items;
    first->bytes = stage->bytes;
    first->busy =
        stage->busy > first->blocked ? stage->busy - first->blocked : 0;
}

int leat_data_layer_stats(const leat_data_layer *layer, leat_stats *stats)
{
    leat_stats all = {.device_node = -1, .host_node = -1};
    if (!stats || stats->size == 0)
        return leat_error(LEAT_EINVAL, "stats->size is not set");
    const leat_data_layer_group *group = layer->group;
    int status = leat__group_check_process(group);
    if (status)
        return status;
    if (group->prefetcher) {
        leat__prefetcher_stats(group->prefetcher, layer->number, &all);
        add_readers(&all, leat__data_reader_reader(group->reader));
    }
    if (all.nstages < LEAT_MAX_STAGES)
        all.stage[all.nstages++] = (leat_stage_stats){
            .name = "forward",
            .items = layer->samples,
            .blocked_empty = (double)layer->waited * 1e-9,
        };
    all.memory.mapped = mapped_bytes();
    all.peak.mapped = all.memory.mapped;
    all.peak.readers = all.memory.readers;
    all.batches = layer->batches;
    all.samples = layer->samples;
    all.waited = (double)layer->waited * 1e-9;
    all.bad_records = layer->bad_records.count;
    all.bad = layer->bad_records.list;
    all.nbad = layer->bad_records.listed;
    all.cores = group->cores;
    all.unwritten = layer->bad_records.unwritten;
    all.distinct_bad = (int64_t)layer->bad_records.known.n;
    if (group->prefetcher)
        all.elapsed = (double)(leat__clock_now() - group->begun) * 1e-9;
    all.size = stats->size < sizeof(all) ? stats->size : sizeof(all);
    memcpy(stats, &all, all.size);
    return LEAT_OK;
}
