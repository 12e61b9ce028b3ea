/* cache_format.h: the files of a cache's directory. */
#ifndef LEAT_DECORATORS_CACHE_CACHE_FORMAT_H
#define LEAT_DECORATORS_CACHE_CACHE_FORMAT_H

#include "base/crc32c.h"
#include "base/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The first bytes of `index`. */
#define LEAT__CACHE_MAGIC "leatcch1"

/* The longest path, with the name of a file in it. */
typedef char leat__cache_path[PATH_MAX];

/* The file `index`: this, `count` places, and the identity. */
typedef struct leat__cache_index_header {
    char magic[8];
    uint64_t count;
    uint64_t data_bytes;
    uint64_t identity_bytes;
    uint32_t body_crc;   /* of all that follows */
    uint32_t header_crc; /* of what is above it */
} leat__cache_index_header;

/* Where an entry is in the file `data`. */
typedef struct leat__cache_place {
    uint64_t offset;
    uint64_t bytes; /* 0: not written yet */
    uint64_t crc;
} leat__cache_place;

static inline uint32_t
leat__cache_header_crc(const leat__cache_index_header *header)
{
    return leat__crc32c(0, header,
                        offsetof(leat__cache_index_header, header_crc));
}

/* A file's path. LEAT_EINVAL: it is too long. */
static inline int leat__cache_join(leat__cache_path out, const char *path,
                                   const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s%s", path, name);
    if (n >= 0 && n < PATH_MAX)
        return LEAT_OK;
    return leat_error(LEAT_EINVAL, "cache: the path %.40s... is too long",
                      path);
}

#endif
