#include "decorators/index_map.h"
#include "base/error.h"

#include <stdbool.h>

/* Positions mapped in one go: a bit of 64 for each, and 3 KiB of stack. */
#define AT_ONCE 64

/* Where samples come from. */
typedef struct mapped_positions {
    leat_position from[AT_ONCE];
    int upstream[AT_ONCE];
} mapped_positions;

static leat__index_map *map_of(leat_reader *reader)
{
    return (leat__index_map *)reader;
}

static int map_some(const leat__index_map *map, const leat_position at[], int n,
                    mapped_positions *mapped)
{
    n = n < AT_ONCE ? n : AT_ONCE;
    map->positions(map, at, n, mapped->from, mapped->upstream);
    return n;
}

/* Positions of one upstream reader, and their places among those mapped. */
typedef struct gathered {
    leat_position from[AT_ONCE];
    leat_sample *out[AT_ONCE];
    int place[AT_ONCE];
    int n;
} gathered;

/*
 * Takes out of `left`, a bit for each position, those of the first one's
 * reader. A call of a reader costs more than a sample of it.
 */
static int gather(const mapped_positions *mapped, uint64_t *left,
                  leat_sample *const out[], gathered *group)
{
    int upstream = mapped->upstream[__builtin_ctzll(*left)];
    group->n = 0;
    for (uint64_t rest = *left; rest; rest &= rest - 1) {
        int i = __builtin_ctzll(rest);
        if (mapped->upstream[i] != upstream)
            continue;
        group->from[group->n] = mapped->from[i];
        group->out[group->n] = out ? out[i] : NULL;
        group->place[group->n++] = i;
        *left &= ~((uint64_t)1 << i);
    }
    return upstream;
}

static uint64_t first_bits(int n)
{
    return n < AT_ONCE ? ((uint64_t)1 << n) - 1 : UINT64_MAX;
}

static bool is_of_one(const mapped_positions *mapped, int n)
{
    int differs = 0;
    for (int i = 1; i < n; i++)
        differs |= mapped->upstream[i] ^ mapped->upstream[0];
    return !differs;
}

/* Reads a group's samples, all but for an error, or `*got` of them. */
static int read_group(leat_reader *upstream, const gathered *group, int *got)
{
    int status = LEAT_OK;
    for (*got = 0; *got < group->n && !status;) {
        int some;
        status = leat_reader_pull_at(upstream, group->from + *got,
                                     group->out + *got, group->n - *got, &some);
        *got += some;
    }
    return status;
}

/*
 * Reads from several readers. The first of several errors counts: what was read
 * after it is lost. Not inlined: readers of one have smaller frames.
 */
__attribute__((noinline)) static int read_groups(leat__index_map *map,
                                                 const mapped_positions *mapped,
                                                 leat_sample *const out[],
                                                 int n, int *got)
{
    gathered group;
    char line[LEAT__ERROR_MAX];
    int first = LEAT_OK, read = 0;
    uint64_t left = first_bits(n);
    *got = n;
    while (left) {
        int upstream = gather(mapped, &left, out, &group);
        int done;
        int status =
            read_group(map->decorator.upstream[upstream], &group, &done);
        read += done;
        if (!status)
            continue;
        first = status;
        leat__error_save(line);
        *got = group.place[done];
        left &= first_bits(*got);
    }
    if (!first) {
        leat__read_limit_raise(&map->limit, n);
        return LEAT_OK;
    }
    if (read > *got)
        leat__read_limit_reset(&map->limit);
    for (int i = *got + 1; i < n; i++)
        leat_sample_clear(out[i]);
    return leat_error(first, "%s", line);
}

int leat__index_map_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got)
{
    leat__index_map *map = map_of(reader);
    mapped_positions mapped;
    n = map_some(map, at, n, &mapped);
    if (!is_of_one(&mapped, n))
        return read_groups(map, &mapped, out,
                           leat__read_limit_get(&map->limit, n), got);
    return leat_reader_pull_at(map->decorator.upstream[mapped.upstream[0]],
                               mapped.from, out, n, got);
}

int leat__index_map_next(leat_reader *reader, leat_sample *const out[], int n,
                         int *got)
{
    leat__index_map *map = map_of(reader);
    leat_position at[AT_ONCE];
    int64_t left = map->count - map->next.index;
    int status = leat__decorator_check_running(&map->decorator);
    if (status)
        return status;
    if (left <= 0)
        return LEAT_END;
    n = n < AT_ONCE ? n : AT_ONCE;
    n = n < left ? n : (int)left;
    for (int i = 0; i < n; i++)
        at[i] = (leat_position){map->next.epoch, map->next.index + i};
    status = reader->ops->read_at(reader, at, out, n, got);
    map->next.index += *got + (status == LEAT_EDATA);
    return status;
}

void leat__index_map_advise(leat_reader *reader, const leat_position at[],
                            int n)
{
    const leat__index_map *map = map_of(reader);
    mapped_positions mapped;
    gathered group;
    for (int done = 0; done < n;) {
        int some = map_some(map, at + done, n - done, &mapped);
        for (uint64_t left = first_bits(some); left;) {
            int upstream = gather(&mapped, &left, NULL, &group);
            leat_reader_advise(map->decorator.upstream[upstream], group.from,
                               group.n);
        }
        done += some;
    }
}

int leat__index_map_count(leat_reader *reader, int64_t *out)
{
    *out = map_of(reader)->count;
    return LEAT_OK;
}

int leat__index_map_seek(leat_reader *reader, leat_position position,
                         leat_token *mark)
{
    leat__index_map *map = map_of(reader);
    (void)mark;
    if (position.index > map->count)
        return leat_error(LEAT_EINVAL,
                          "%s: sample %lld is out of range: there are %lld",
                          reader->ops->name, (long long)position.index,
                          (long long)map->count);
    map->next = position;
    return LEAT_OK;
}

int leat__index_map_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        map_of(reader)->next = (leat_position){0, 0};
    return status;
}
