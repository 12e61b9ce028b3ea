/*
 * shuffle:files, the parts of a reader in another order, each in its own.
 *
 * DESIGN
 *
 * An epoch's order of parts is computed, but where each begins in it is a sum
 * over those before it. The sums of the two epochs that were asked for last are
 * kept: readers go from one epoch to the next, on several threads. `lock`
 * guards them, for as long as a call looks up its positions.
 */
#include "base/error.h"
#include "base/memory.h"
#include "decorators/index_map.h"
#include "decorators/shuffle/permutation.h"
#include "decorators/shuffle/shuffle.h"

#include <pthread.h>

/* The number of its key, beside those of shuffle_map.c. */
enum { KEY_OF_PARTS = 0, ORDERS = 2 };

/* An epoch's order. */
typedef struct part_order {
    int64_t epoch; /* -1: none yet */
    leat__permutation_key key;
    int64_t *begin; /* of each part in it, and the count */
} part_order;

typedef struct shuffle_files {
    leat__index_map map;
    leat__shuffle_options options;
    leat__permutation permutation; /* of the parts */
    const int64_t *first;          /* of each part upstream; borrowed */
    int64_t n;
    pthread_mutex_t lock; /* protects what follows */
    part_order order[ORDERS];
    int latest; /* of the two */
} shuffle_files;

static void add_up(const shuffle_files *files, int64_t epoch, part_order *order)
{
    leat__permutation_key_init(&order->key, &files->permutation,
                               files->options.seed, epoch, KEY_OF_PARTS);
    order->epoch = epoch;
    for (int64_t i = 0; i < files->n; i++) {
        int64_t part =
            leat__permutation_at(&files->permutation, &order->key, i);
        order->begin[i + 1] =
            order->begin[i] + files->first[part + 1] - files->first[part];
    }
}

/* Under the lock. */
static const part_order *find_order(shuffle_files *files, int64_t epoch)
{
    int64_t same = leat__shuffle_epoch(&files->options, epoch);
    if (files->order[files->latest].epoch != same)
        files->latest = (files->latest + 1) % ORDERS;
    part_order *order = &files->order[files->latest];
    if (order->epoch != same)
        add_up(files, same, order);
    return order;
}

/* The part, in the order, that has this index; none that is empty. */
static int64_t find_part(const part_order *order, int64_t n, int64_t index)
{
    int64_t low = 0;
    int64_t high = n - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (index < order->begin[middle + 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void order_positions(const leat__index_map *map,
                            const leat_position at[], int n,
                            leat_position from[], int upstream[])
{
    /* What is looked up depends on the position alone. */
    shuffle_files *files = (shuffle_files *)(uintptr_t)map;
    const part_order *order = NULL;
    int64_t begin = 0, end = 0, first = 0, epoch = 0;
    pthread_mutex_lock(&files->lock);
    for (int i = 0; i < n; i++) {
        if (!order || at[i].epoch != epoch) {
            order = find_order(files, epoch = at[i].epoch);
            begin = end = 0;
        }
        if (at[i].index < begin || at[i].index >= end) {
            int64_t rank = find_part(order, files->n, at[i].index);
            begin = order->begin[rank];
            end = order->begin[rank + 1];
            first = files->first[leat__permutation_at(&files->permutation,
                                                      &order->key, rank)];
        }
        upstream[i] = 0;
        from[i] = (leat_position){epoch, first + at[i].index - begin};
    }
    pthread_mutex_unlock(&files->lock);
}

static void free_orders(shuffle_files *files)
{
    for (int i = 0; i < ORDERS; i++)
        leat__free(files->order[i].begin);
}

static void files_close(leat_reader *reader)
{
    shuffle_files *files = (shuffle_files *)reader;
    free_orders(files);
    pthread_mutex_destroy(&files->lock);
    leat__decorator_close(reader);
}

static int64_t files_memory(leat_reader *reader)
{
    const shuffle_files *files = (const shuffle_files *)reader;
    return ORDERS * (files->n + 1) * (int64_t)sizeof(int64_t);
}

static const leat_reader_ops shuffle_files_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = leat__index_map_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = files_close,
    .count = leat__index_map_count,
    .read_at = leat__index_map_read_at,
    .advise = leat__index_map_advise,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
    .memory = files_memory,
};

static int make_orders(shuffle_files *files)
{
    for (int i = 0; i < ORDERS; i++) {
        files->order[i].epoch = -1;
        files->order[i].begin = leat__alloc_zero(
            (size_t)files->n + 1, sizeof(*files->order[i].begin));
        if (!files->order[i].begin)
            return LEAT_ENOMEM;
    }
    int error = pthread_mutex_init(&files->lock, NULL);
    return error ? leat__error_system(error, "shuffle: cannot make a lock")
                 : LEAT_OK;
}

int leat__shuffle_files_open(const leat_open *open,
                             const leat__shuffle_options *options,
                             leat_reader **out)
{
    leat_reader *upstream = open->upstream[0];
    const int64_t *first;
    int64_t n;
    int status = leat_reader_parts(upstream, &first, &n);
    if (status == LEAT_EUNSUPPORTED || (!status && first[n] == LEAT_ENDLESS))
        return leat_error(LEAT_EUNSUPPORTED,
                          "shuffle:files: the reader \"%s\" is not one of "
                          "several files with random access: expected "
                          "files:PATTERN | shuffle before interleave, or "
                          "shuffle:N",
                          upstream->ops->name);
    if (status)
        return status;
    shuffle_files *files =
        leat__decorator_new(open, &shuffle_files_ops, sizeof(*files));
    if (!files)
        return LEAT_ENOMEM;
    files->options = *options;
    files->map.positions = order_positions;
    files->map.count = first[n];
    files->first = first;
    files->n = n;
    leat__permutation_init(&files->permutation, n);
    status = make_orders(files);
    if (status) {
        free_orders(files);
        leat__free(files);
        return status;
    }
    *out = &files->map.decorator.reader;
    return LEAT_OK;
}
