#include "decorators/index_map.h"
#include "base/error.h"

/* Positions mapped in one go: 1.5 KiB of stack. */
#define AT_ONCE 64

/* Positions mapped, and how many of the first come from one reader. */
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
    for (int i = 0; i < n; i++)
        mapped->upstream[i] = 0;
    map->positions(map, at, n, mapped->from, mapped->upstream);
    return n;
}

/* The end of the positions from `first` on that come from one reader. */
static int run_end(const mapped_positions *mapped, int first, int n)
{
    int end = first + 1;
    while (end < n && mapped->upstream[end] == mapped->upstream[first])
        end++;
    return end;
}

int leat__index_map_read_at(leat_reader *reader, const leat_position at[],
                            leat_sample *const out[], int n, int *got)
{
    const leat__index_map *map = map_of(reader);
    mapped_positions mapped;
    int status = LEAT_OK;
    n = map_some(map, at, n, &mapped);
    while (*got < n && !status) {
        int first = *got;
        int some, end = run_end(&mapped, first, n);
        leat_reader *upstream = map->decorator.upstream[mapped.upstream[first]];
        status = leat_reader_pull_at(upstream, mapped.from + first, out + first,
                                     end - first, &some);
        *got += some;
        if (some < end - first)
            break;
    }
    return status;
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
    status = leat__index_map_read_at(reader, at, out, n, got);
    map->next.index += *got + (status == LEAT_EDATA);
    return status;
}

void leat__index_map_advise(leat_reader *reader, const leat_position at[],
                            int n)
{
    const leat__index_map *map = map_of(reader);
    mapped_positions mapped;
    for (int done = 0; done < n;) {
        int some = map_some(map, at + done, n - done, &mapped);
        for (int first = 0, end; first < some; first = end) {
            end = run_end(&mapped, first, some);
            leat_reader_advise(map->decorator.upstream[mapped.upstream[first]],
                               mapped.from + first, end - first);
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
