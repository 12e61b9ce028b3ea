#include "decorators/cache/cache_entry.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/shape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the entry, from its beginning. */
typedef struct span {
    uint64_t offset;
    uint64_t bytes;
} span;

typedef struct header {
    uint64_t bytes; /* of the entry */
    int64_t record;
    uint32_t nfields;
    uint32_t has_key; /* 0: none; else 1 and the bytes that it lacks */
    span key;
    span source; /* these two with their NUL */
    span line;   /* 0 bytes: the sample is good */
    span mark;
} header;

typedef struct entry_field {
    int32_t dtype;
    int32_t ndim;
    int64_t shape[LEAT_MAX_DIMS];
    span data;
} entry_field;

/* The header and the fields of an entry as they are laid out. */
typedef struct layout {
    header head;
    entry_field field[LEAT_MAX_FIELDS];
} layout;

/* Adds `bytes` of them after all so far. False: they overflow. */
static bool add(layout *all, span *out, size_t bytes)
{
    uint64_t unit = LEAT__CACHE_ENTRY_UNIT;
    *out = (span){all->head.bytes, bytes};
    return !__builtin_add_overflow(all->head.bytes, bytes, &all->head.bytes) &&
           !__builtin_add_overflow(all->head.bytes, unit - 1,
                                   &all->head.bytes) &&
           (all->head.bytes &= ~(unit - 1), true);
}

/* Small things are not worth a unit each. */
static bool add_small(span *out, uint64_t *at, size_t bytes)
{
    *out = (span){*at, bytes};
    return !__builtin_add_overflow(*at, bytes, at);
}

static bool lay_out(const leat__cache_item *item, layout *all)
{
    const leat_provenance *from = &item->sample->from;
    header *head = &all->head;
    int n = item->line ? 0 : item->sample->nfields - item->first;
    *head = (header){.nfields = (uint32_t)n, .record = from->record};
    if (from->key)
        head->has_key = from->key_cut + (from->key_cut < UINT32_MAX);
    uint64_t at = sizeof(header) + (uint64_t)n * sizeof(entry_field);
    bool fits =
        add_small(&head->source, &at,
                  from->source ? strlen(from->source) + 1 : 0) &&
        add_small(&head->line, &at, item->line ? strlen(item->line) + 1 : 0) &&
        add_small(&head->mark, &at, item->mark ? item->mark->size : 0) &&
        add_small(&head->key, &at, from->key ? from->key_size : 0);
    span small;
    fits = fits && add(all, &small, at);
    for (int i = 0; i < n && fits; i++) {
        const leat_field *field = &item->sample->field[item->first + i];
        all->field[i] =
            (entry_field){.dtype = field->dtype, .ndim = field->ndim};
        memcpy(all->field[i].shape, field->shape, sizeof(field->shape));
        fits = add(all, &all->field[i].data, field->bytes);
    }
    return fits;
}

size_t leat__cache_entry_size(const leat__cache_item *item)
{
    layout all;
    return lay_out(item, &all) ? (size_t)all.head.bytes : 0;
}

static void put(char *entry, const span *to, const void *bytes)
{
    if (bytes && to->bytes > 0)
        memcpy(entry + to->offset, bytes, to->bytes);
}

void leat__cache_entry_write(const leat__cache_item *item, void *entry)
{
    layout all;
    const leat_provenance *from = &item->sample->from;
    (void)lay_out(item, &all);
    const header *head = &all.head;
    size_t fields = head->nfields * sizeof(entry_field);
    memset(entry, 0, head->bytes);
    memcpy(entry, head, sizeof(*head));
    memcpy((char *)entry + sizeof(*head), all.field, fields);
    put(entry, &head->source, from->source);
    put(entry, &head->line, item->line);
    put(entry, &head->mark, item->mark ? item->mark->bytes : NULL);
    put(entry, &head->key, from->key);
    for (uint32_t i = 0; i < head->nfields; i++)
        put(entry, &all.field[i].data,
            item->sample->field[item->first + (int)i].data);
}

static bool is_inside(const header *head, const span *part)
{
    return part->offset <= head->bytes &&
           part->bytes <= head->bytes - part->offset;
}

/* Whether the span is a text that ends within it, or nothing. */
static bool is_text(const char *entry, const header *head, const span *part)
{
    return is_inside(head, part) &&
           (part->bytes == 0 || entry[part->offset + part->bytes - 1] == 0);
}

static int refuse(void)
{
    return leat_error(LEAT_EFORMAT, "the cache has no sample there: its bytes "
                                    "are damaged");
}

/* The header, if all that it points to is inside. */
static int read_header(const char *entry, size_t size, header *head)
{
    if (size < sizeof(*head))
        return refuse();
    memcpy(head, entry, sizeof(*head));
    bool is_sound =
        head->bytes <= size && head->bytes >= sizeof(*head) &&
        head->nfields <= LEAT_MAX_FIELDS &&
        head->nfields * sizeof(entry_field) <= head->bytes - sizeof(*head) &&
        is_text(entry, head, &head->source) &&
        is_text(entry, head, &head->line) && is_inside(head, &head->key) &&
        is_inside(head, &head->mark) &&
        (head->nfields > 0) == (head->line.bytes == 0);
    return is_sound ? LEAT_OK : refuse();
}

static int append_field(const char *entry, const header *head, uint32_t i,
                        leat_sample *out)
{
    entry_field field;
    memcpy(&field, entry + sizeof(*head) + i * sizeof(field), sizeof(field));
    if (!is_inside(head, &field.data) || out->nfields >= LEAT_MAX_FIELDS)
        return refuse();
    size_t each = leat_dtype_size((leat_dtype)field.dtype), bytes;
    if (!leat__shape_bytes(field.ndim, field.shape, each, &bytes) ||
        bytes > field.data.bytes)
        return refuse();
    leat_field *to = &out->field[out->nfields++];
    *to = (leat_field){.dtype = (leat_dtype)field.dtype,
                       .ndim = field.ndim,
                       .data = entry + field.data.offset,
                       .bytes = field.data.bytes};
    memcpy(to->shape, field.shape, sizeof(to->shape));
    return LEAT_OK;
}

int leat__cache_entry_view(const void *entry, size_t size, leat_sample *out)
{
    const char *bytes = entry;
    header head;
    int status = read_header(bytes, size, &head);
    if (status)
        return status;
    out->from.source = head.source.bytes ? bytes + head.source.offset : NULL;
    out->from.record = head.record;
    out->from.key = head.has_key ? bytes + head.key.offset : NULL;
    out->from.key_size = head.has_key ? head.key.bytes : 0;
    out->from.key_cut = head.has_key ? head.has_key - 1 : 0;
    if (head.line.bytes > 0)
        return leat_error(LEAT_EDATA, "%s", bytes + head.line.offset);
    for (uint32_t i = 0; i < head.nfields && !status; i++)
        status = append_field(bytes, &head, i, out);
    return status;
}

int leat__cache_entry_mark(const void *entry, size_t size, leat_token *token)
{
    header head;
    int status = read_header(entry, size, &head);
    if (status)
        return status;
    return leat_token_put(token, (const char *)entry + head.mark.offset,
                          head.mark.bytes);
}
