#include "layer/tops/field_check.h"
#include "base/error.h"
#include "base/shape.h"

int leat__field_check_init(leat__field_check *check,
                           const leat_field_spec *spec, int n)
{
    *check = (leat__field_check){.nfields = n, .spec = spec};
    for (int i = 0; i < n; i++) {
        if (leat_dtype_size(spec[i].dtype) == 0 || !spec[i].name ||
            spec[i].ndim < -1 || spec[i].ndim > LEAT_MAX_DIMS)
            return leat_error(LEAT_ESTATE,
                              "the reader's field %d (%s) has type %d and %d "
                              "dimensions: expected a known type and -1 to %d",
                              i, spec[i].name ? spec[i].name : "no name",
                              (int)spec[i].dtype, spec[i].ndim, LEAT_MAX_DIMS);
        bool is_any =
            spec[i].dtype == LEAT_BYTES && spec[i].content == LEAT_CONTENT_ANY;
        check->is_promised[i] = !is_any && !spec[i].varies;
        if (check->is_promised[i])
            check->field[check->n++] = i;
    }
    return LEAT_OK;
}

void leat__field_check_leave(leat__field_check *check, int field)
{
    int n = 0;
    for (int i = 0; i < check->n; i++)
        if (check->field[i] != field)
            check->field[n++] = check->field[i];
    check->n = n;
}

int leat__field_check_one(const leat__field_check *check,
                          const leat_sample *sample, int field)
{
    if (!check->is_promised[field] ||
        leat__field_is_kept(&check->spec[field], &sample->field[field]))
        return LEAT_OK;
    return leat__field_check_report(check, sample, field);
}

int leat__field_check_report(const leat__field_check *check,
                             const leat_sample *sample, int field)
{
    char expected[LEAT__FIELD_TEXT_MAX], found[LEAT__FIELD_TEXT_MAX];
    const leat_field_spec *spec = &check->spec[field];
    const leat_field *is = &sample->field[field];
    return leat_error(
        LEAT_EDATA, "field %s: expected %s, found %s", spec->name,
        leat__field_text(expected, spec->dtype, spec->ndim, spec->shape),
        leat__field_text(found, is->dtype, is->ndim, is->shape));
}

int leat__field_check_report_number(const leat__field_check *check,
                                    const leat_sample *sample)
{
    return leat_error(LEAT_EDATA, "a sample has %d fields, %d are needed",
                      sample->nfields, check->nfields);
}
