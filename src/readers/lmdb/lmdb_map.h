/*
 * lmdb_map.h: an LMDB file in memory; every page and node is checked before
 * use.
 *
 * liblmdb trusts its pages; these functions trust only `base` and `size`.
 * Errors are LEAT_EFORMAT and name the file, the page, the expected and the
 * found value. All may be called from any thread.
 */
#ifndef LEAT_READERS_LMDB_MAP_H
#define LEAT_READERS_LMDB_MAP_H

#include <leat/status.h>

#include <stdbool.h>
#include <string.h>

/* The bytes read of a meta page, including its page header. */
#define LEAT__LMDB_META_BYTES 152

/* The limit of liblmdb's cursors. */
#define LEAT__LMDB_DEPTH_MAX 32

/* The root of a tree without pages. */
#define LEAT__LMDB_NO_PAGE UINT64_MAX

/* A meta page's description of the file and its main database. */
typedef struct leat__lmdb_meta {
    size_t page_size;       /* bytes, a power of two from 256 to 65536 */
    uint64_t last_page;     /* of the file; below 2^48 */
    uint64_t last_promised; /* the meta page's last page; those past last_page
                               are free */
    uint64_t txnid;         /* the transaction that wrote it */
    uint64_t root;
    uint64_t entries;
    uint64_t branch_pages; /* these three are unchecked: for estimates only */
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t free_root; /* of the tree of free pages */
    uint64_t free_entries;
    int free_depth;
    int depth;     /* levels, including the leaves */
    bool backward; /* keys are compared from their last byte */
} leat__lmdb_meta;

typedef struct leat__lmdb_map {
    const char *name; /* for errors; borrowed */
    const unsigned char *base;
    size_t size; /* bytes, at least all pages */
    leat__lmdb_meta meta;
} leat__lmdb_map;

/* Checks that the bytes are a meta page, of any database. */
int leat__lmdb_meta_check_page(
    const char *name, int number,
    const unsigned char bytes[LEAT__LMDB_META_BYTES]);

/*
 * Parses meta page `number` (0 or 1) from its first bytes, as far as liblmdb
 * checks it to open the file. leat__lmdb_meta_check checks its contents.
 */
int leat__lmdb_meta_parse(leat__lmdb_meta *out, const char *name, int number,
                          const unsigned char bytes[LEAT__LMDB_META_BYTES]);

/* Which transaction wrote the meta page, of its bytes. */
uint64_t
leat__lmdb_meta_txnid(const unsigned char bytes[LEAT__LMDB_META_BYTES]);

/* Checks the tree that the meta page describes against the file's size. */
int leat__lmdb_meta_check(const leat__lmdb_meta *meta, const char *name,
                          size_t size);

/*
 * Checks that the two meta pages, read at one moment, have the same page size
 * and consecutive transactions, as LMDB writes them in turn. Otherwise an older
 * snapshot would be opened silently.
 */
int leat__lmdb_meta_check_pair(const leat__lmdb_meta meta[2], const char *name);

/* The snapshot of `meta` in memory. */
int leat__lmdb_map_init(leat__lmdb_map *out, const char *name, const void *base,
                        size_t size, const leat__lmdb_meta *meta);

/* The latest snapshot of a file that was not checked yet. */
int leat__lmdb_map_latest(leat__lmdb_map *out, const char *name,
                          const void *base, size_t size);

/* Bytes; then come the offsets of the nodes. */
enum { LEAT__LMDB_PAGE_HEADER = 16 };

/* An error that names the file and page. */
#define LEAT__LMDB_BAD_PAGE(map, number, format, ...)                          \
    leat_error(LEAT_EFORMAT, "%s: page %llu is damaged: " format, (map)->name, \
               (unsigned long long)(number), __VA_ARGS__)

static inline uint16_t leat__lmdb_load16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint32_t leat__lmdb_load32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint64_t leat__lmdb_load64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline const unsigned char *
leat__lmdb_map_page_at(const leat__lmdb_map *map, uint64_t number)
{
    return map->base + number * map->meta.page_size;
}

typedef enum leat__lmdb_page_type {
    LEAT__LMDB_BRANCH = 1,
    LEAT__LMDB_LEAF = 2
} leat__lmdb_page_type;

/* A page with a checked header. */
typedef struct leat__lmdb_page {
    uint64_t number;
    const unsigned char *bytes;
    uint32_t count; /* nodes */
    uint32_t upper; /* offset of the first node */
} leat__lmdb_page;

int leat__lmdb_map_page(const leat__lmdb_map *map, uint64_t number,
                        leat__lmdb_page_type type, leat__lmdb_page *out);

/* Checks the number of a page and the one that it has; returns its flags. */
int leat__lmdb_map_check_number(const leat__lmdb_map *map, uint64_t number,
                                unsigned *flags);

#endif
