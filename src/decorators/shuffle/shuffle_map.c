/*
 * shuffle, and shuffle:block=N: an order that is computed.
 *
 * In blocks, the blocks are permuted, and the samples of each. The last block
 * may be short, so the blocks after it begin that much earlier: where it stands
 * is found by the inverse permutation.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/sample.h"
#include "decorators/index_map.h"
#include "decorators/shuffle/permutation.h"
#include "decorators/shuffle/shuffle.h"

/* Numbers of the keys of an epoch: all samples or blocks, then each block's. */
enum { KEY_OF_ALL, KEY_OF_BLOCKS };

typedef struct shuffle_map {
    leat__index_map map;
    leat__shuffle_options options;
    leat__permutation all; /* samples; or blocks, and the samples of one: */
    leat__permutation whole, last;
} shuffle_map;

/* An epoch's permutation of the samples, or of the blocks. */
static void make_key(const shuffle_map *shuffle, int64_t epoch,
                     leat__permutation_key *key)
{
    leat__permutation_key_init(key, &shuffle->all, shuffle->options.seed,
                               leat__shuffle_epoch(&shuffle->options, epoch),
                               KEY_OF_ALL);
}

static void permute_positions(const leat__index_map *map,
                              const leat_position at[], int n,
                              leat_position from[], int upstream[])
{
    const shuffle_map *shuffle = (const shuffle_map *)map;
    leat__permutation_key key;
    int64_t epoch = -1;
    for (int i = 0; i < n; i++) {
        if (at[i].epoch != epoch)
            make_key(shuffle, epoch = at[i].epoch, &key);
        upstream[i] = 0;
        from[i].epoch = epoch;
        from[i].index = leat__permutation_at(&shuffle->all, &key, at[i].index);
    }
}

/* An epoch's order of blocks, and the block that was looked up last. */
typedef struct block_order {
    int64_t epoch;
    leat__permutation_key blocks;
    int64_t last;       /* where the last block stands among them */
    int64_t begin, end; /* of the block's samples as they are given */
    int64_t first;      /* of them, upstream */
    const leat__permutation *inside;
    leat__permutation_key key; /* of `inside` */
} block_order;

static void begin_epoch(const shuffle_map *shuffle, int64_t epoch,
                        block_order *order)
{
    int64_t blocks = (int64_t)shuffle->all.count;
    make_key(shuffle, epoch, &order->blocks);
    order->epoch = epoch;
    order->last =
        leat__permutation_find(&shuffle->all, &order->blocks, blocks - 1);
    order->begin = order->end = 0;
}

/* Looks up the block that sample `index` of the epoch is in. Sums of a count
 * and a block fit into 64 bits, but not always with a sign. */
static void find_block(const shuffle_map *shuffle, int64_t index,
                       block_order *order)
{
    uint64_t at = (uint64_t)index;
    uint64_t size = (uint64_t)shuffle->options.size;
    uint64_t missing = size - shuffle->last.count;
    uint64_t end_of_last = (uint64_t)order->last * size + shuffle->last.count;
    uint64_t before = at >= end_of_last ? missing : 0;
    uint64_t rank = (at + before) / size;
    int64_t block =
        leat__permutation_at(&shuffle->all, &order->blocks, (int64_t)rank);
    order->inside =
        (int64_t)rank == order->last ? &shuffle->last : &shuffle->whole;
    order->begin = (int64_t)(rank * size - before);
    order->end = order->begin + (int64_t)order->inside->count;
    order->first = (int64_t)((uint64_t)block * size);
    leat__permutation_key_init(
        &order->key, order->inside, shuffle->options.seed,
        leat__shuffle_epoch(&shuffle->options, order->epoch),
        KEY_OF_BLOCKS + block);
}

static void permute_in_blocks(const leat__index_map *map,
                              const leat_position at[], int n,
                              leat_position from[], int upstream[])
{
    const shuffle_map *shuffle = (const shuffle_map *)map;
    block_order order = {.epoch = -1};
    for (int i = 0; i < n; i++) {
        if (at[i].epoch != order.epoch)
            begin_epoch(shuffle, at[i].epoch, &order);
        if (at[i].index < order.begin || at[i].index >= order.end)
            find_block(shuffle, at[i].index, &order);
        upstream[i] = 0;
        from[i].epoch = at[i].epoch;
        from[i].index =
            order.first + leat__permutation_at(order.inside, &order.key,
                                               at[i].index - order.begin);
    }
}

static int shuffle_read_at(leat_reader *reader, const leat_position at[],
                           leat_sample *const out[], int n, int *got)
{
    int status = leat__index_map_read_at(reader, at, out, n, got);
    leat__sample_prefetch(out, *got);
    return status;
}

static int shuffle_next(leat_reader *reader, leat_sample *const out[], int n,
                        int *got)
{
    int status = leat__index_map_next(reader, out, n, got);
    leat__sample_prefetch(out, *got);
    return status;
}

static const leat_reader_ops shuffle_map_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "shuffle",
    .fields = leat__decorator_fields,
    .next = shuffle_next,
    .seek = leat__index_map_seek,
    .cancel = leat__decorator_cancel,
    .close = leat__decorator_close,
    .count = leat__index_map_count,
    .read_at = shuffle_read_at,
    .advise = leat__index_map_advise,
    .save = leat__decorator_save,
    .restore = leat__index_map_restore,
    .may_block = leat__decorator_may_block,
};

static void divide_into_blocks(shuffle_map *shuffle)
{
    int64_t count = shuffle->map.count;
    int64_t size = shuffle->options.size;
    int64_t blocks = count / size + (count % size > 0);
    shuffle->map.positions = permute_in_blocks;
    leat__permutation_init(&shuffle->all, blocks);
    leat__permutation_init(&shuffle->whole, size);
    leat__permutation_init(&shuffle->last, (count - 1) % size + 1);
}

int leat__shuffle_map_open(const leat_open *open,
                           const leat__shuffle_options *options,
                           leat_reader **out)
{
    leat_reader *upstream = open->upstream[0];
    int64_t count = LEAT_ENDLESS;
    int status = LEAT_OK;
    if (leat_reader_is_random_access(upstream))
        status = leat_reader_count(upstream, &count);
    if (status)
        return status;
    if (count == LEAT_ENDLESS)
        return leat_error(LEAT_EUNSUPPORTED,
                          "shuffle: the reader \"%s\" %s: expected shuffle:N, "
                          "with a buffer of N samples",
                          upstream->ops->name,
                          leat_reader_is_random_access(upstream)
                              ? "has no end"
                              : "cannot be read in any order");
    shuffle_map *shuffle =
        leat__decorator_new(open, &shuffle_map_ops, sizeof(*shuffle));
    if (!shuffle)
        return LEAT_ENOMEM;
    shuffle->options = *options;
    shuffle->map.count = count;
    if (options->size > 0 && options->size < count) {
        divide_into_blocks(shuffle);
    } else {
        shuffle->map.positions = permute_positions;
        leat__permutation_init(&shuffle->all, count);
    }
    *out = &shuffle->map.decorator.reader;
    return LEAT_OK;
}
