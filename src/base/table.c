#include "base/table.h"

#include <stdbool.h>
#include <string.h>

typedef void function(void);

bool leat__table_has(const void *table, size_t size,
                     const leat__table_entry *entry)
{
    function *found;
    if (entry->offset > size || sizeof(found) > size - entry->offset)
        return false;
    memcpy(&found, (const char *)table + entry->offset, sizeof(found));
    return found != NULL;
}

const char *leat__table_first_missing(const void *table, size_t size,
                                      const leat__table_entry entries[], int n)
{
    for (int i = 0; i < n; i++)
        if (!leat__table_has(table, size, &entries[i]))
            return entries[i].name;
    return NULL;
}
