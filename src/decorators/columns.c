/* columns:NAME=TYPE,..., the columns of a line of text as fields. */
#include "base/decimal.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/cast.h"
#include "decorators/decorators.h"
#include "decorators/sample_map.h"

#include <leat/decorators.h>

#include <stdio.h>
#include <string.h>

/* The most columns of a line. */
enum { COLUMNS_MAX = 1 << 20 };

/* Several columns after each other that make up a field, or are skipped. */
typedef struct column {
    char name[LEAT__FIELD_NAME_MAX];
    leat_dtype dtype;
    int64_t n; /* of them; */
    bool is_scalar;
    bool is_skipped;
} column;

typedef struct columns_reader {
    leat__sample_map map;
    int line; /* the field of the text */
    int ncolumns, nmade;
    column column[2 * LEAT_MAX_FIELDS];
    char separator; /* ' ': any number of blanks and tabs */
} columns_reader;

/* Where a line is read. */
typedef struct cursor {
    const char *at, *end;
    char separator;
    bool is_done;   /* the last column was read */
    int64_t column; /* the number of the latest, from 1 */
} cursor;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The end of the column at the cursor; false: the line has no more. */
static bool next_column(cursor *in, const char **text, size_t *size)
{
    if (in->is_done)
        return false;
    const char *begin = in->at, *end;
    in->column++;
    if (in->separator == ' ') {
        while (in->at < in->end && !is_blank(*in->at))
            in->at++;
        end = in->at;
        while (in->at < in->end && is_blank(*in->at))
            in->at++;
        in->is_done = in->at == in->end;
    } else {
        const char *separator =
            memchr(begin, in->separator, (size_t)(in->end - begin));
        in->is_done = !separator;
        end = separator ? separator : in->end;
        in->at = separator ? separator + 1 : in->end;
    }
    while (begin < end && is_blank(*begin))
        begin++;
    while (begin < end && is_blank(end[-1]))
        end--;
    *text = begin;
    *size = (size_t)(end - begin);
    return true;
}

/* An empty line is an empty column, unless blanks separate columns. */
static cursor begin_line(const columns_reader *columns, const leat_field *line)
{
    cursor in = {.at = line->bytes > 0 ? line->data : "",
                 .separator = columns->separator};
    in.end = in.at + line->bytes;
    if (in.separator != ' ')
        return in;
    while (in.at < in.end && is_blank(*in.at))
        in.at++;
    in.is_done = in.at == in.end;
    return in;
}

static int bad_number(const cursor *in, const column *column, const char *text,
                      size_t size)
{
    char shown[LEAT__KEY_TEXT_MAX];
    return leat_error(LEAT_EDATA, "column %lld (%s): expected %s, found '%s'",
                      (long long)in->column, column->name,
                      leat_dtype_name(column->dtype),
                      leat__key_text(shown, text, size));
}

/* A number of the column's type; a whole one has to fit. */
static bool read_number(leat_dtype dtype, const char *text, size_t size,
                        void *to)
{
    double real;
    int64_t whole, back;
    if (leat__dtype_is_float(dtype)) {
        if (!leat__decimal_double(text, size, &real))
            return false;
        leat__cast(to, dtype, &real, LEAT_FLOAT64, 1);
        return true;
    }
    if (!leat__decimal_integer(text, size, &whole))
        return false;
    leat__cast(to, dtype, &whole, LEAT_INT64, 1);
    leat__cast(&back, LEAT_INT64, to, dtype, 1);
    return back == whole;
}

/* Reads a field's columns: numbers to `to`, or the text as a view. */
static int read_columns(cursor *in, const column *column, char *to,
                        leat_field *out)
{
    size_t each = leat_dtype_size(column->dtype);
    for (int64_t i = 0; i < column->n; i++) {
        const char *text;
        size_t size;
        if (!next_column(in, &text, &size))
            return leat_error(LEAT_EDATA,
                              "the line has %lld columns: expected more, for "
                              "%s",
                              (long long)in->column, column->name);
        if (column->is_skipped)
            continue;
        if (column->dtype == LEAT_BYTES) {
            out->data = text;
            out->bytes = size;
            out->ndim = 1;
            out->shape[0] = (int64_t)size;
        } else if (!read_number(column->dtype, text, size,
                                to + (size_t)i * each)) {
            return bad_number(in, column, text, size);
        }
    }
    return LEAT_OK;
}

/* The shape of a column's field, at its numbers. */
static leat_field field_of(const column *column, void *numbers)
{
    leat_field field = {.dtype = column->dtype,
                        .ndim = !column->is_scalar,
                        .shape = {column->n},
                        .data = numbers,
                        .bytes =
                            (size_t)column->n * leat_dtype_size(column->dtype)};
    return field;
}

/* Numbers lie after each other, in units of 8 bytes. */
static size_t room_of(const column *column)
{
    if (column->is_skipped || column->dtype == LEAT_BYTES)
        return 0;
    size_t bytes = (size_t)column->n * leat_dtype_size(column->dtype);
    return (bytes + 7) / 8 * 8;
}

static int read_line(const columns_reader *columns, const leat_field *line,
                     char *numbers, leat_field made[LEAT_MAX_FIELDS])
{
    cursor in = begin_line(columns, line);
    const char *text;
    size_t size;
    int status = LEAT_OK, n = 0;
    for (int i = 0; i < columns->ncolumns && !status; i++) {
        const column *column = &columns->column[i];
        leat_field ignored, *out = column->is_skipped ? &ignored : &made[n++];
        *out = field_of(column, numbers);
        status = read_columns(&in, column, numbers, out);
        numbers += room_of(column);
    }
    if (!status && next_column(&in, &text, &size))
        status = leat_error(LEAT_EDATA,
                            "the line has more than the %lld columns that "
                            "were expected",
                            (long long)in.column - 1);
    return status;
}

static int columns_work(leat__sample_map *map, leat__map_state *state,
                        leat_sample *sample, int first)
{
    const columns_reader *columns = (const columns_reader *)map;
    int at = first + columns->line, more = columns->nmade - 1;
    leat_field made[LEAT_MAX_FIELDS];
    leat_field *field = &sample->field[at];
    size_t room = 0;
    (void)state;
    if (field->dtype != LEAT_BYTES)
        return leat_error(LEAT_EDATA, "field \"%s\" is %s, not text",
                          map->given[columns->line].name,
                          leat_dtype_name(field->dtype));
    if (sample->nfields + more > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "columns: a sample has more than %d "
                          "fields",
                          LEAT_MAX_FIELDS);
    for (int i = 0; i < columns->ncolumns; i++)
        room += room_of(&columns->column[i]);
    char *numbers = leat__sample_map_take(sample, room > 0 ? room : 1);
    if (!numbers)
        return LEAT_ENOMEM;
    int status = read_line(columns, field, numbers, made);
    if (status)
        return status;
    memmove(field + columns->nmade, field + 1,
            (size_t)(sample->nfields - at - 1) * sizeof(*field));
    memcpy(field, made, (size_t)columns->nmade * sizeof(*field));
    sample->nfields += more;
    return LEAT_OK;
}

static const leat__map_kind columns_kind = {.name = "columns",
                                            .work = columns_work};

/* "float32" or "float32*784"; errors quote it as `given`. */
static int parse_type(column *to, const char *text, const char *given)
{
    char name[16];
    size_t size = strcspn(text, "* \t");
    const char *times = text + size + strspn(text + size, " \t");
    to->n = 1;
    to->is_scalar = *times != '*';
    if (*times == '*') {
        times += 1 + strspn(times + 1, " \t");
        if (!leat__decimal_integer(times, strlen(times), &to->n) || to->n < 1 ||
            to->n > COLUMNS_MAX)
            return leat_error(LEAT_EINVAL,
                              "'%s': expected 1 to %d columns, such as "
                              "float32*784",
                              given, (int)COLUMNS_MAX);
    }
    snprintf(name, sizeof(name), "%.*s", (int)size, text);
    if (strchr(text, '['))
        return leat_error(LEAT_EINVAL,
                          "'%s': expected TYPE or TYPE*N: each line has as "
                          "many columns",
                          given);
    int status = leat_dtype_parse(&to->dtype, name);
    if (!status && to->dtype == LEAT_BYTES && !to->is_scalar)
        status = leat_error(LEAT_EINVAL,
                            "'%s': a field of bytes is a single column", given);
    return status;
}

/* "NAME=TYPE", or "_", which is skipped, as "_*3" is. */
static int add_column(columns_reader *columns, const char *pair)
{
    const char *type;
    if (columns->ncolumns == 2 * LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL, "more than %d columns are described",
                          2 * LEAT_MAX_FIELDS);
    column *to = &columns->column[columns->ncolumns++];
    int status = leat__field_split_pair(pair, to->name, &type);
    if (!status && !type && to->name[0] == '_') {
        char skipped[LEAT__FIELD_NAME_MAX + 8];
        to->is_skipped = true;
        snprintf(skipped, sizeof(skipped), "uint8%s", to->name + 1);
        return parse_type(to, skipped, pair);
    }
    if (!status && !type)
        status =
            leat_error(LEAT_EINVAL,
                       "'%s': expected NAME=TYPE, or _ to skip a column", pair);
    if (!status)
        status = parse_type(to, type, type);
    columns->nmade += !status;
    return status;
}

static void add_spec(columns_reader *columns, const column *column, int *at)
{
    leat_field_spec *spec = &columns->map.spec[*at];
    if (column->is_skipped)
        return;
    bool is_text = column->dtype == LEAT_BYTES;
    *spec = (leat_field_spec){.name = column->name,
                              .dtype = column->dtype,
                              .ndim = is_text || !column->is_scalar,
                              .shape = {is_text ? -1 : column->n},
                              .content = is_text ? LEAT_CONTENT_PLAIN
                                                 : LEAT_CONTENT_ANY};
    ++*at;
}

static int check_names(const leat__sample_map *map)
{
    for (int i = 0; i < map->nspec; i++)
        for (int k = 0; k < i; k++) {
            if (strcmp(map->spec[i].name, map->spec[k].name) == 0)
                return leat_error(LEAT_EINVAL, "two fields are \"%s\"",
                                  map->spec[i].name);
        }
    return LEAT_OK;
}

/* The columns' fields take the place of the text's. */
static int set_specs(columns_reader *columns, const char *field)
{
    leat__sample_map *map = &columns->map;
    int n = map->nspec;
    int status = leat__field_find_bytes(map->spec, n, field, &columns->line);
    if (status)
        return status;
    const leat_field_spec *line = &map->spec[columns->line];
    if (!line->varies && line->dtype != LEAT_BYTES)
        return leat_error(LEAT_EINVAL, "field \"%s\" is %s: expected text",
                          line->name, leat_dtype_name(line->dtype));
    if (columns->nmade < 1 || n - 1 + columns->nmade > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "%d fields are made beside %d: expected at least 1, "
                          "and at most %d in sum",
                          columns->nmade, n - 1, LEAT_MAX_FIELDS);
    int at = columns->line;
    memmove(&map->spec[at + columns->nmade], &map->spec[at + 1],
            (size_t)(n - at - 1) * sizeof(map->spec[0]));
    for (int i = 0; i < columns->ncolumns; i++)
        add_spec(columns, &columns->column[i], &at);
    map->nspec = n - 1 + columns->nmade;
    return check_names(map);
}

/* A letter, or the word of one that is hard to write. */
static int parse_separator(const char *text, char *out)
{
    if (strcmp(text, "tab") == 0)
        *out = '\t';
    else if (strcmp(text, "space") == 0)
        *out = ' ';
    else if (strlen(text) == 1 && *text != '\r' && *text != '\n')
        *out = *text;
    else
        return leat_error(LEAT_EINVAL,
                          "sep: '%s': expected a letter, tab or space", text);
    return LEAT_OK;
}

static int columns_open(const leat_open *open, leat_reader **out)
{
    const char *pair;
    leat__sample_map *map;
    int status =
        leat__sample_map_new(&map, open, &columns_kind, sizeof(columns_reader));
    if (status)
        return status;
    columns_reader *columns = (columns_reader *)map;
    status =
        parse_separator(leat_args_get(open->args, "sep"), &columns->separator);
    for (int i = 0; !status && (pair = leat_args_at(open->args, i)) != NULL;
         i++)
        status = add_column(columns, pair);
    if (!status && map->ngiven > 0)
        status = set_specs(columns, leat_args_get(open->args, "field"));
    return leat__sample_map_opened(map, status, out);
}

static const leat_argument columns_arguments[] = {
    {.name = "column",
     .positional = 1,
     .required = 1,
     .repeated = 1,
     .pairs = 1,
     .help = "NAME=TYPE of the next column, NAME=TYPE*N of N of them; _ or _*N "
             "skips"},
    {.name = "sep",
     .initial = ",",
     .help = "what is between columns: a letter, tab, or space for any blanks"},
    {.name = "field", .help = "the text; the first field of bytes"},
    {0},
};

const leat_reader_type leat__columns_type = {
    .size = sizeof(leat_reader_type),
    .name = "columns",
    .help = "the columns of a line of text as fields",
    .arguments = columns_arguments,
    .argument_size = sizeof(leat_argument),
    .min_upstream = 1,
    .max_upstream = 1,
    .keeps_order = 1,
    .open = columns_open,
};

int leat_pipeline_columns(leat_pipeline **out, leat_pipeline *upstream,
                          const char *columns)
{
    if (!columns)
        return leat_error(LEAT_EINVAL, "columns: the columns are NULL");
    return leat_pipeline_create(out, &leat__columns_type, columns, NULL, NULL,
                                &upstream, 1);
}
