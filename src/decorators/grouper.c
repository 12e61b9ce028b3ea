#include "decorators/grouper.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "pipeline/reader_state.h"

#include <stdio.h>
#include <string.h>

/* Positions mapped in one go. */
#define AT_ONCE 64

static leat__grouper *grouper_of(leat_reader *reader)
{
    return (leat__grouper *)reader;
}

static leat_reader *upstream_of(const leat__grouper *grouper)
{
    return grouper->decorator.upstream[0];
}

int leat__grouper_new(const leat_open *open, const leat_reader_ops *ops,
                      size_t bytes, int room, leat__grouper **out)
{
    leat__grouper *grouper = leat__decorator_new(open, ops, bytes);
    if (!grouper)
        return LEAT_ENOMEM;
    int status = leat__group_pool_init(&grouper->pool, ops->name, open, room);
    if (status) {
        leat__free(grouper);
        return status;
    }
    grouper->grouping.name = ops->name;
    grouper->grouping.args = open->args;
    grouper->grouping.max_memory = open->max_memory;
    grouper->grouping.samples = -1;
    grouper->samples = -1;
    *out = grouper;
    return LEAT_OK;
}

void leat__grouper_free(leat__grouper *grouper)
{
    leat__group_pool_finish(&grouper->pool);
    leat__free(grouper);
}

int leat__grouper_plan(leat__grouper *grouper)
{
    const leat_field_spec *in;
    int n;
    if (grouper->is_planned)
        return LEAT_OK;
    int status = leat_reader_fields(upstream_of(grouper), &in, &n);
    if (!status)
        status = leat__grouping_plan(&grouper->grouping, in, n);
    grouper->is_planned = !status;
    return status;
}

int leat__grouper_set_window(leat__grouper *grouper, int64_t size,
                             int64_t shift, int64_t stride)
{
    leat_reader *upstream = upstream_of(grouper);
    grouper->size = size;
    grouper->shift = shift;
    grouper->stride = stride;
    int status = leat_reader_count(upstream, &grouper->samples);
    if (status == LEAT_EUNSUPPORTED)
        grouper->samples = -1;
    else if (status)
        return status;
    /* Where no group is shorter, the first dimension is known. */
    int64_t samples = grouper->samples;
    bool is_even =
        samples == LEAT_ENDLESS ||
        (samples >= 0 && shift == size && stride == 1 && samples % size == 0);
    if (grouper->drops_last || is_even)
        grouper->grouping.samples = size;
    return leat_reader_is_random_access(upstream) ? leat__grouper_plan(grouper)
                                                  : LEAT_OK;
}

/* Samples from the first one of a group to its last one. */
static int64_t extent(const leat__grouper *grouper)
{
    return (grouper->size - 1) * grouper->stride + 1;
}

int64_t leat__grouper_groups(const leat__grouper *grouper, int64_t samples)
{
    int64_t shift = grouper->shift;
    if (samples == LEAT_ENDLESS)
        return LEAT_ENDLESS;
    if (!grouper->drops_last)
        return samples / shift + (samples % shift > 0);
    int64_t span = extent(grouper);
    return samples < span ? 0 : (samples - span) / shift + 1;
}

int64_t leat__grouper_begin(const leat__grouper *grouper, int64_t index)
{
    int64_t most = grouper->samples >= 0 ? grouper->samples : INT64_MAX;
    return index > most / grouper->shift ? most : index * grouper->shift;
}

int leat__grouper_fail(leat__grouper *grouper, leat__group *group, int i,
                       int status, leat_sample *out)
{
    char line[LEAT__ERROR_MAX];
    if (status == LEAT_END) {
        leat__group_pool_give_back(&grouper->pool, group);
        return status;
    }
    leat__error_save(line);
    bool is_named =
        group->sample[i] && !leat__grouping_name(group->sample[i], false, out);
    leat__group_pool_give_back(&grouper->pool, group);
    if (status == LEAT_EDATA && !is_named)
        out->from.key = NULL;
    return leat_error(status, "%s", line);
}

int leat_group_options_init(leat_group_options *options)
{
    static const leat_group_options defaults = LEAT_GROUP_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}

/* Appends ",NAME=(VALUE)" to a text; `out` NULL: only its size. */
static size_t write_list(char *out, const char *name, const char *value)
{
    if (!value || !*value)
        return 0;
    size_t size = strlen(name) + strlen(value) + sizeof(",=()") - 1;
    if (out)
        snprintf(out, size + 1, ",%s=(%s)", name, value);
    return size;
}

static size_t write_options(char *out, const char *scalars,
                            const leat_group_options *options)
{
    const char *last = options->drop_last ? ",drop_last=1" : "";
    size_t used = strlen(scalars) + strlen(last);
    if (out)
        snprintf(out, used + 1, "%s%s", scalars, last);
    used += write_list(out ? out + used : NULL, "pad", options->pad);
    used += write_list(out ? out + used : NULL, "pad_to", options->pad_to);
    used += write_list(out ? out + used : NULL, "ragged", options->ragged);
    return used;
}

int leat__grouper_create(leat_pipeline **out, const leat_reader_type *type,
                         leat_pipeline *upstream, const char *scalars,
                         const leat_group_options *options)
{
    leat_group_options all = LEAT_GROUP_OPTIONS_INIT;
    int status = leat__options_copy(&all, options, sizeof(all));
    if (status)
        return leat__error_context(status, "%s", type->name);
    char *text = leat__alloc(write_options(NULL, scalars, &all) + 1);
    if (!text)
        return LEAT_ENOMEM;
    write_options(text, scalars, &all);
    status = leat_pipeline_create(out, type, text, NULL, NULL, &upstream, 1);
    leat__free(text);
    return status;
}

int leat__grouper_fields(leat_reader *reader, const leat_field_spec **out,
                         int *n)
{
    leat__grouper *grouper = grouper_of(reader);
    int status = leat__grouper_plan(grouper);
    if (status)
        return status;
    *out = grouper->grouping.spec;
    *n = grouper->grouping.n;
    return LEAT_OK;
}

/* Some samples at a time, as each may need memory; `*got` are complete. */
static int complete_group(leat__grouper *grouper, const leat__group *group,
                          int *got)
{
    int64_t bytes = 0;
    int status = LEAT_OK;
    for (*got = 0; *got < group->n && !status;) {
        int done, n = leat__group_pool_at_once(&grouper->pool, group->n - *got);
        status = leat_reader_materialize(upstream_of(grouper),
                                         group->sample + *got, n, &done);
        for (; done > 0; done--)
            bytes += leat__group_pool_measure(&grouper->pool,
                                              group->sample[(*got)++]);
        if (!status)
            status = leat__group_pool_check(&grouper->pool, group->n, bytes);
    }
    return status;
}

/* The group that next or read_at left to the sample. */
static int write_group(leat__grouper *grouper, leat_sample *out)
{
    int culprit = 0, got;
    leat__group *group;
    int status = leat__group_pool_unbind(&grouper->pool, out, &group);
    if (status)
        return status;
    status = complete_group(grouper, group, &got);
    if (status)
        return leat__grouper_fail(grouper, group, got < group->n ? got : 0,
                                  status, out);
    size_t before = out->taken;
    status = leat__grouping_write(&grouper->grouping, group->sample, group->n,
                                  group->length, out, &culprit);
    if (status)
        return leat__grouper_fail(grouper, group, culprit, status, out);
    atomic_store_explicit(&grouper->pool.usual, out->taken - before,
                          memory_order_relaxed);
    leat__group_pool_complete(&grouper->pool, group);
    leat__group_pool_give_back(&grouper->pool, group);
    return LEAT_OK;
}

int leat__grouper_materialize(leat_reader *reader, leat_sample *const out[],
                              int n, int *got)
{
    leat__grouper *grouper = grouper_of(reader);
    int status = leat__decorator_check_running(&grouper->decorator);
    for (; *got < n && !status; *got += !status)
        status = write_group(grouper, out[*got]);
    return status;
}

int leat__grouper_count(leat_reader *reader, int64_t *out)
{
    const leat__grouper *grouper = grouper_of(reader);
    if (grouper->samples < 0)
        return leat_reader_count(upstream_of(grouper), out);
    *out = leat__grouper_groups(grouper, grouper->samples);
    return LEAT_OK;
}

/* The positions of samples `first` to `first` + n - 1 of a group. */
static int map_some(const leat__grouper *grouper, leat_position at,
                    int64_t first, int64_t n, leat_position from[AT_ONCE])
{
    int64_t begin = leat__grouper_begin(grouper, at.index);
    int some = n < AT_ONCE ? (int)n : AT_ONCE;
    for (int i = 0; i < some; i++)
        from[i] =
            (leat_position){at.epoch, begin + (first + i) * grouper->stride};
    return some;
}

/* The samples that a group has. */
static int64_t size_at(const leat__grouper *grouper, leat_position at)
{
    int64_t left = grouper->samples - leat__grouper_begin(grouper, at.index);
    int64_t most = (left - 1) / grouper->stride + 1;
    return left <= 0 ? 0 : most < grouper->size ? most : grouper->size;
}

static int read_group(leat__grouper *grouper, leat_position at,
                      leat__group *group)
{
    leat_position from[AT_ONCE];
    int size = (int)size_at(grouper, at);
    int status = LEAT_OK;
    while (group->n < size && !status) {
        int got;
        int n = leat__group_pool_at_once(&grouper->pool, size - group->n);
        n = map_some(grouper, at, group->n, n, from);
        status = leat__group_clear(&grouper->pool, group, group->n, n);
        if (status)
            return status;
        status = leat_reader_pull_at(upstream_of(grouper), from,
                                     group->sample + group->n, n, &got);
        group->n += got;
    }
    return status;
}

int leat__grouper_read_at(leat_reader *reader, const leat_position at[],
                          leat_sample *const out[], int n, int *got)
{
    leat__grouper *grouper = grouper_of(reader);
    (void)n;
    leat__group *group;
    int status = leat__group_pool_take(&grouper->pool, &group);
    if (status)
        return status;
    status = read_group(grouper, at[0], group);
    if (status)
        return leat__grouper_fail(grouper, group, group->n, status, out[0]);
    status = leat__group_pool_bind(&grouper->pool, group, out[0]);
    if (status)
        leat__group_pool_give_back(&grouper->pool, group);
    /* leat has materialize complete it before it returns. */
    out[0]->deferred = 1;
    *got = !status;
    return status;
}

void leat__grouper_advise(leat_reader *reader, const leat_position at[], int n)
{
    const leat__grouper *grouper = grouper_of(reader);
    leat_position from[AT_ONCE];
    for (int i = 0; i < n; i++) {
        int64_t size = size_at(grouper, at[i]);
        for (int64_t done = 0; done < size;) {
            int some = map_some(grouper, at[i], done, size - done, from);
            leat_reader_advise(upstream_of(grouper), from, some);
            done += some;
        }
    }
}

int64_t leat__grouper_held_below(const leat_reader *reader)
{
    int64_t bytes = 0;
    for (; reader; reader = reader->state->upstream)
        if (LEAT__HAS(reader, materialize) &&
            reader->ops->materialize == leat__grouper_materialize)
            bytes += leat__grouper_memory((leat_reader *)(uintptr_t)reader);
    return bytes;
}

int64_t leat__grouper_memory(leat_reader *reader)
{
    return atomic_load_explicit(&grouper_of(reader)->pool.bytes,
                                memory_order_relaxed);
}

void leat__grouper_close(leat_reader *reader)
{
    leat__group_pool_finish(&grouper_of(reader)->pool);
    leat__decorator_close(reader);
}
