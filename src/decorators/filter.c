/* The samples for which a function of the caller's is true. */
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "decorators/callable.h"
#include "decorators/sample_filter.h"

#include <leat/decorators.h>

/* Owned by the pipeline. */
typedef struct filter_object {
    leat__callable callable; /* first */
    leat_filter_function *function;
} filter_object;

typedef struct filter_reader {
    leat__sample_filter filter;
    const filter_object *object; /* borrowed from the pipeline */
} filter_reader;

static int filter_test(leat__sample_filter *filter, leat_sample *sample,
                       int first, bool *keeps)
{
    const filter_object *object = ((filter_reader *)filter)->object;
    leat__call call;
    int keep = 0;
    leat__call_begin(&call, sample, first);
    int status = object->function(object->callable.user, sample, &keep);
    status = leat__call_end(&call, &object->callable, &filter->decorator,
                            sample, status, false);
    *keeps = keep != 0;
    return status;
}

static void filter_cancelled(leat__sample_filter *filter)
{
    leat__callable_cancel(&((filter_reader *)filter)->object->callable);
}

static const leat__filter_kind filter_kind = {
    .name = "filter", .test = filter_test, .cancel = filter_cancelled};

static int filter_open(const leat_open *open, leat_reader **out)
{
    leat__sample_filter *filter;
    int status = leat__sample_filter_new(&filter, open, &filter_kind,
                                         sizeof(filter_reader));
    if (status)
        return status;
    const filter_object *object = leat_args_object(open->args);
    ((filter_reader *)filter)->object = object;
    if (object->callable.may_block)
        filter->ops.may_block = NULL; /* as the type says */
    return leat__sample_filter_opened(filter, LEAT_OK, out);
}

#define FILTER_TYPE                                                            \
    .size = sizeof(leat_reader_type), .name = "filter", .min_upstream = 1,     \
    .max_upstream = 1, .keeps_order = 1, .object_id = leat__callable_id,       \
    .open = filter_open

static const leat_reader_type filter_type = {FILTER_TYPE};
static const leat_reader_type blocking_type = {FILTER_TYPE, .may_block = 1};

int leat_pipeline_filter(leat_pipeline **out, leat_pipeline *upstream,
                         leat_filter_function *function, void *user,
                         uint64_t id, const leat_filter_options *options)
{
    leat_filter_options values = LEAT_FILTER_OPTIONS_INIT;
    int status = leat__options_copy(&values, options, sizeof(values));
    if (status)
        return status;
    if (!function)
        status = leat_error(LEAT_EINVAL, "filter: the function is NULL");
    filter_object *object =
        status ? NULL : leat__alloc_zero(1, sizeof(*object));
    if (!object) {
        if (values.release)
            values.release(user);
        return status ? status : LEAT_ENOMEM;
    }
    leat__callable *callable = &object->callable;
    leat__callable_init(callable, "filter", values.name, user, id);
    callable->may_block = values.may_block;
    callable->cancel = values.cancel;
    callable->release = values.release;
    object->function = function;
    return leat_pipeline_create(
        out, values.may_block ? &blocking_type : &filter_type, NULL, object,
        leat__callable_release, &upstream, 1);
}

int leat_filter_options_init(leat_filter_options *options)
{
    const leat_filter_options defaults = LEAT_FILTER_OPTIONS_INIT;
    return leat__options_init(options, &defaults, sizeof(defaults));
}
