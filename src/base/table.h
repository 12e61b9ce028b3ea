/* table.h: tables of functions that others wrote, looked at before any call. */
#ifndef LEAT_BASE_TABLE_H
#define LEAT_BASE_TABLE_H

#include <leat/status.h>

#include <stdbool.h>

/* A pointer in a table, by its name. */
typedef struct leat__table_entry {
    const char *name;
    size_t offset;
} leat__table_entry;

#define LEAT__TABLE_ENTRY(table, member)                                       \
    {                                                                          \
        .name = #member, .offset = offsetof(table, member)                     \
    }

/* Whether the table, of `size` bytes, has it: an older one may end before. */
bool leat__table_has(const void *table, size_t size,
                     const leat__table_entry *entry);

/* The name of the first of them that is not there; NULL: all are. Static. */
const char *leat__table_first_missing(const void *table, size_t size,
                                      const leat__table_entry entries[], int n);

#endif
