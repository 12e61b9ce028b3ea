#include "decorators/interleave/source_names.h"
#include "base/counter.h"
#include "base/memory.h"
#include "pipeline/arguments.h"

#include <string.h>

/* Where `name` is in the table, or would be. */
static char **find(char **table, size_t room, const char *name)
{
    size_t i = leat__hash_text(0xcbf29ce484222325u, name) & (room - 1);
    while (table[i] && strcmp(table[i], name) != 0)
        i = (i + 1) & (room - 1);
    return &table[i];
}

/* At most half of the table is in use. */
static int grow(leat__source_names *names)
{
    if (2 * names->n < names->room)
        return LEAT_OK;
    size_t room = names->room ? 2 * names->room : 16;
    char **table = leat__alloc_zero(room, sizeof(*table));
    if (!table)
        return LEAT_ENOMEM;
    for (size_t i = 0; i < names->room; i++)
        if (names->name[i])
            *find(table, room, names->name[i]) = names->name[i];
    leat__free(names->name);
    leat__counter_add(&names->bytes,
                      (int64_t)((room - names->room) * sizeof(*table)));
    names->name = table;
    names->room = room;
    return LEAT_OK;
}

const char *leat__source_names_keep(leat__source_names *names, const char *name)
{
    if (grow(names))
        return NULL;
    char **place = find(names->name, names->room, name);
    if (!*place) {
        *place = leat__strdup(name);
        names->n += *place != NULL;
        leat__counter_add(&names->bytes,
                          *place ? (int64_t)strlen(name) + 1 : 0);
    }
    return *place;
}

void leat__source_names_finish(leat__source_names *names)
{
    for (size_t i = 0; i < names->room; i++)
        leat__free(names->name[i]);
    leat__free(names->name);
}
