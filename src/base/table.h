/* table.h: checks the entries of operation tables of other authors. */
#ifndef LEAT_BASE_TABLE_H
#define LEAT_BASE_TABLE_H

#include <leat/status.h>

#include <stdbool.h>

/* A function pointer in a table, with its name. */
typedef struct leat__table_entry {
    const char *name;
    size_t offset;
} leat__table_entry;

#define LEAT__TABLE_ENTRY(table, member)                                       \
    {                                                                          \
        .name = #member, .offset = offsetof(table, member)                     \
    }

/* Whether the table, of `size` bytes, has the entry; an older table may end
 * before it. */
bool leat__table_has(const void *table, size_t size,
                     const leat__table_entry *entry);

/* The name of the first missing entry; NULL: none is missing. Static. */
const char *leat__table_first_missing(const void *table, size_t size,
                                      const leat__table_entry entries[], int n);

#endif
