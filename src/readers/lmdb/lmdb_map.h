/*
 * lmdb_map.h: an LMDB file as memory, every page and node checked before use.
 *
 * liblmdb trusts its pages; these functions trust nothing but `base` and
 * `size`. Errors are LEAT_EFORMAT and name the file, the page, what was
 * expected and what was found. All may be called from any thread.
 */
#ifndef LEAT_READERS_LMDB_MAP_H
#define LEAT_READERS_LMDB_MAP_H

#include <leat/status.h>

#include <stdbool.h>

/* The bytes of a meta page that are read, its page header included. */
#define LEAT__LMDB_META_BYTES 152

/* liblmdb's own cursor goes no deeper. */
#define LEAT__LMDB_DEPTH_MAX 32

/* The root of a tree without pages. */
#define LEAT__LMDB_NO_PAGE UINT64_MAX

/* What a meta page says of the file and of its main database. */
typedef struct leat__lmdb_meta {
    size_t page_size;       /* bytes, a power of two from 256 to 65536 */
    uint64_t last_page;     /* below 2^48; in the file */
    uint64_t last_promised; /* what the meta page says; free behind last_page */
    uint64_t txnid;         /* the transaction that wrote it */
    uint64_t root;
    uint64_t entries;
    uint64_t branch_pages; /* these three are not checked: for estimates */
    uint64_t leaf_pages;
    uint64_t overflow_pages;
    uint64_t free_root; /* of the tree of free pages */
    uint64_t free_entries;
    int free_depth;
    int depth;     /* levels, that of the leaves included */
    bool backward; /* keys are ordered from their last byte on */
} leat__lmdb_meta;

typedef struct leat__lmdb_map {
    const char *name; /* for errors; borrowed */
    const unsigned char *base;
    size_t size; /* bytes, at least those of all pages */
    leat__lmdb_meta meta;
} leat__lmdb_map;

/* Whether the bytes are those of a meta page, whatever database it tells of. */
int leat__lmdb_meta_check_page(
    const char *name, int number,
    const unsigned char bytes[LEAT__LMDB_META_BYTES]);

/*
 * Reads meta page `number` (0 or 1) from its first bytes: what liblmdb needs to
 * open the file. The contents are checked by leat__lmdb_meta_check.
 */
int leat__lmdb_meta_parse(leat__lmdb_meta *out, const char *name, int number,
                          const unsigned char bytes[LEAT__LMDB_META_BYTES]);

/* Checks the tree that the meta page describes against the file's size. */
int leat__lmdb_meta_check(const leat__lmdb_meta *meta, const char *name,
                          size_t size);

/*
 * Checks that the two meta pages, read at one moment, are of one page size and
 * of transactions that follow each other, as LMDB writes them in turn. One that
 * names another transaction would bring an older state back, without a word.
 */
int leat__lmdb_meta_check_pair(const leat__lmdb_meta meta[2], const char *name);

/* The snapshot of `meta` in memory. */
int leat__lmdb_map_init(leat__lmdb_map *out, const char *name, const void *base,
                        size_t size, const leat__lmdb_meta *meta);

/* The latest snapshot of a file of which nothing is known. */
int leat__lmdb_map_latest(leat__lmdb_map *out, const char *name,
                          const void *base, size_t size);

typedef enum leat__lmdb_page_type {
    LEAT__LMDB_BRANCH = 1,
    LEAT__LMDB_LEAF = 2
} leat__lmdb_page_type;

/* A page whose header was checked. */
typedef struct leat__lmdb_page {
    uint64_t number;
    const unsigned char *bytes;
    uint32_t count; /* nodes */
    uint32_t upper; /* where the nodes begin */
} leat__lmdb_page;

int leat__lmdb_map_page(const leat__lmdb_map *map, uint64_t number,
                        leat__lmdb_page_type type, leat__lmdb_page *out);

/* The page that node `slot` of a branch points to. */
int leat__lmdb_map_child(const leat__lmdb_map *map, const leat__lmdb_page *page,
                         uint32_t slot, uint64_t *out);

/*
 * Ask the processor for a page's header, and for the beginnings of a leaf's
 * nodes and the ends of those before them. Nothing is checked or kept; the
 * second one reads the header, so the page ought to be in memory.
 */
void leat__lmdb_map_fetch_header(const leat__lmdb_map *map, uint64_t number);
void leat__lmdb_map_fetch_nodes(const leat__lmdb_map *map, uint64_t number);

/* The key of that node: all below it come no sooner. The first has none. */
int leat__lmdb_map_separator(const leat__lmdb_map *map,
                             const leat__lmdb_page *page, uint32_t slot,
                             const unsigned char **key, size_t *key_size);

/* A node of a leaf. Its value is either in it or on overflow pages. */
typedef struct leat__lmdb_node {
    uint64_t address; /* page << 16 | offset in it */
    const unsigned char *key;
    size_t key_size;
    const unsigned char *value; /* NULL: on overflow pages */
    size_t value_size;
    uint64_t overflow; /* the first of them */
} leat__lmdb_node;

/* Node `slot` of a leaf. Touches no page but the leaf. */
int leat__lmdb_map_node(const leat__lmdb_map *map, const leat__lmdb_page *page,
                        uint32_t slot, leat__lmdb_node *out);

/* The node at a place that an earlier call gave. */
int leat__lmdb_map_node_at(const leat__lmdb_map *map, uint64_t address,
                           leat__lmdb_node *out);

/* Finds the value on its overflow pages, if it is there. */
int leat__lmdb_map_overflow(const leat__lmdb_map *map, leat__lmdb_node *node);

/* How many overflow pages there are from node->overflow on, once it is found.
 */
size_t leat__lmdb_map_overflow_pages(const leat__lmdb_map *map,
                                     const leat__lmdb_node *node);

/* Whether key `b` comes behind key `a` in the file's order. */
bool leat__lmdb_map_ascends(const leat__lmdb_map *map, const void *a,
                            size_t a_size, const void *b, size_t b_size);

#endif
