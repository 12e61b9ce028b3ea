/* select:NEW=FIELD,FIELD, which fields a sample has, and their names. */
#include "base/error.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

#include <string.h>

typedef struct select_reader {
    leat__sample_map map;
    int from[LEAT_MAX_FIELDS]; /* of the upstream reader's fields */
    int kept;                  /* how many of the first stay where they are */
} select_reader;

static int select_work(leat__sample_map *map, leat__map_state *state,
                       leat_sample *sample, int first)
{
    const select_reader *select = (const select_reader *)map;
    leat_field chosen[LEAT_MAX_FIELDS];
    leat_field *field = sample->field + first;
    int kept = select->kept, n = map->nspec;
    (void)state;
    if (first + n > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "select: a sample has %d fields, at most %d",
                          first + n, LEAT_MAX_FIELDS);
    for (int i = kept; i < n; i++)
        chosen[i] = field[select->from[i]];
    for (int i = kept; i < n; i++)
        field[i] = chosen[i];
    sample->nfields = first + n;
    return LEAT_OK;
}

static const leat__map_kind select_kind = {.name = "select",
                                           .work = select_work};

static int add_field(select_reader *select, const char *pair)
{
    leat__sample_map *map = &select->map;
    int n = map->nspec;
    const char *from;
    if (n == LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "expected at most %d fields",
                          LEAT_MAX_FIELDS);
    char *name = map->name[n];
    int status = leat__field_split_pair(pair, name, &from);
    if (!status)
        status = leat__field_find(map->given, map->ngiven, from ? from : name,
                                  &select->from[n]);
    for (int i = 0; i < n && !status; i++) {
        if (strcmp(map->spec[i].name, name) == 0)
            status = leat_error(LEAT_EINVAL, "two fields are \"%s\"", name);
    }
    if (status)
        return status;
    map->spec[n] = map->given[select->from[n]];
    map->spec[n].name = name;
    map->nspec++;
    return LEAT_OK;
}

/* Offsets name the rows by their new name; those of a field that is left out
 * are numbers like others. */
static void rename_offsets(select_reader *select)
{
    leat__sample_map *map = &select->map;
    for (int i = 0; i < map->nspec; i++) {
        const char *rows = map->spec[i].offsets_of;
        map->spec[i].offsets_of = NULL;
        for (int k = map->nspec - 1; k >= 0 && rows; k--) {
            if (strcmp(map->given[select->from[k]].name, rows) == 0)
                map->spec[i].offsets_of = map->name[k];
        }
    }
}

/* Where names alone change, there is no work on samples. */
static void settle_fields(select_reader *select)
{
    leat__sample_map *map = &select->map;
    while (select->kept < map->nspec &&
           select->from[select->kept] == select->kept)
        select->kept++;
    if (select->kept == map->ngiven && map->nspec == map->ngiven)
        map->ops.materialize = NULL;
    rename_offsets(select);
}

static int select_open(const leat_open *open, leat_reader **out)
{
    const char *pair;
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &select_kind, sizeof(select_reader));
    if (status)
        return status;
    map->nspec = 0;
    for (int i = 0; !status && map->ngiven > 0 &&
                    (pair = leat_args_at(open->args, i)) != NULL;
         i++)
        status = add_field((select_reader *)map, pair);
    if (!status)
        settle_fields((select_reader *)map);
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument select_arguments[] = {
    {.name = "field",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "a field that samples keep, or NEW=FIELD by a new name"},
    {0},
};

const leat_reader_type leat__select_type = {
    .size = sizeof(leat_reader_type),
    .name = "select",
    .help = "which fields samples have, by which names",
    .arguments = select_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = select_open,
};

int leat_pipeline_select(leat_pipeline **out, leat_pipeline *upstream,
                         const char *fields)
{
    if (!fields)
        return leat_error(LEAT_EINVAL, "select: the fields are NULL");
    return leat_pipeline_create(out, &leat__select_type, fields, NULL, NULL,
                                &upstream, 1);
}
