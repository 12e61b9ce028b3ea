#include "pipeline/reader_table.h"
#include "base/error.h"
#include "base/table.h"
#include "pipeline/argument_table.h"

#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))
#define OPERATION(member) LEAT__TABLE_ENTRY(leat_reader_ops, member)

static const leat__table_entry obligatory[] = {
    OPERATION(name), OPERATION(fields), OPERATION(next),
    OPERATION(seek), OPERATION(cancel), OPERATION(close),
};

/* Of each pair of optional operations, the first needs the second. */
static const leat__table_entry pairs[][2] = {
    {OPERATION(read_at), OPERATION(count)},
    {OPERATION(save), OPERATION(restore)},
    {OPERATION(restore), OPERATION(save)},
    {OPERATION(advise), OPERATION(read_at)},
    {OPERATION(parts), OPERATION(read_at)},
    {OPERATION(revision), OPERATION(save)},
};

/* What one of them finds, the other could not tell. */
static const leat__table_entry alternatives[2] = {OPERATION(read_at),
                                                  OPERATION(mark)};

int leat__reader_type_check(const leat_reader_type *type)
{
    if (!type)
        return leat_error(LEAT_EINVAL, "the reader type is NULL");
    if (type->size < sizeof(*type))
        return leat_error(LEAT_EINVAL,
                          "a reader type has \"size\" %zu, expected %zu",
                          type->size, sizeof(*type));
    if (!type->name)
        return leat_error(LEAT_EINVAL, "a reader type lacks \"name\"");
    if (type->may_block != 0 && type->may_block != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": may_block is %d: expected 0 "
                          "or 1",
                          type->name, type->may_block);
    if (type->min_upstream < 0 || type->max_upstream < type->min_upstream ||
        type->max_upstream > LEAT_MAX_UPSTREAM)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": min_upstream is %d and "
                          "max_upstream %d: expected 0 to %d, in order",
                          type->name, type->min_upstream, type->max_upstream,
                          LEAT_MAX_UPSTREAM);
    if (type->passes_on < 0 || type->passes_on > 2 ||
        (type->passes_on && type->max_upstream != 1))
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": passes_on is %d: expected "
                          "0, or 1 or 2 with one upstream reader",
                          type->name, type->passes_on);
    if (type->keeps_order != 0 && type->keeps_order != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": keeps_order is %d: expected "
                          "0 or 1",
                          type->name, type->keeps_order);
    if (type->opens_upstream != 0 && type->opens_upstream != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": opens_upstream is %d: "
                          "expected 0 or 1",
                          type->name, type->opens_upstream);
    if (type->drops_behind != 0 && type->drops_behind != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": drops_behind is %d: "
                          "expected 0 or 1",
                          type->name, type->drops_behind);
    if (type->own_access != 0 && type->own_access != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": own_access is %d: expected "
                          "0 or 1",
                          type->name, type->own_access);
    if (type->reads_ahead != 0 && type->reads_ahead != 1)
        return leat_error(LEAT_EINVAL,
                          "the reader type \"%s\": reads_ahead is %d: expected "
                          "0 or 1",
                          type->name, type->reads_ahead);
    if (!type->open)
        return leat_error(LEAT_EINVAL, "the reader type \"%s\" lacks \"open\"",
                          type->name);
    return leat__argument_table_check(type);
}

int leat__reader_ops_check(const leat_reader_ops *ops, const char *name)
{
    if (ops->size < LEAT__READER_OPS_MIN)
        return leat_error(LEAT_EINVAL,
                          "the table of the reader \"%s\" has \"size\" %zu, "
                          "expected %zu",
                          name, ops->size, sizeof(*ops));
    const char *lacks = leat__table_first_missing(ops, ops->size, obligatory,
                                                  LENGTH(obligatory));
    if (lacks)
        return leat_error(LEAT_EINVAL, "the reader \"%s\" lacks \"%s\"", name,
                          lacks);
    for (int i = 0; i < LENGTH(pairs); i++)
        if (leat__table_has(ops, ops->size, &pairs[i][0]) &&
            !leat__table_has(ops, ops->size, &pairs[i][1]))
            return leat_error(LEAT_EINVAL,
                              "the reader \"%s\" has \"%s\", but lacks \"%s\"",
                              name, pairs[i][0].name, pairs[i][1].name);
    if (leat__table_has(ops, ops->size, &alternatives[0]) &&
        leat__table_has(ops, ops->size, &alternatives[1]))
        return leat_error(LEAT_EINVAL,
                          "the reader \"%s\" has both \"%s\" and \"%s\": "
                          "expected one of them",
                          name, alternatives[0].name, alternatives[1].name);
    return LEAT_OK;
}

int leat__reader_no(leat_reader *reader)
{
    (void)reader;
    return 0;
}
