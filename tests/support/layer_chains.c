#include "support/layer_chains.h"

#include "support/bad_records.h"
#include "support/index_decorators.h"
#include "support/layer_fixture.h"
#include "support/stream_decorators.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 15 };

/* A stream of as many images as the fixture has, in callbacks. */
static int stream_open(void *user, void **pass)
{
    (void)user;
    *pass = calloc(1, sizeof(int));
    return *pass ? LEAT_OK : leat_error(LEAT_ENOMEM, "no memory");
}

static int stream_next(void *pass, leat_sample *sample)
{
    const int64_t shape[] = {LAYER_FIXTURE_CHANNELS, LAYER_FIXTURE_HEIGHT,
                             LAYER_FIXTURE_WIDTH};
    int *next = pass;
    if (*next == RECORDS)
        return LEAT_END;
    int i = (*next)++;
    unsigned char *pixels =
        leat_sample_take(sample, LAYER_FIXTURE_PIXELS + sizeof(int32_t));
    if (!pixels)
        return LEAT_ENOMEM;
    for (int j = 0; j < LAYER_FIXTURE_PIXELS; j++)
        pixels[j] = (unsigned char)(7 * i + j);
    memcpy(pixels + LAYER_FIXTURE_PIXELS, &i, sizeof(i));
    int status = leat_sample_set(sample, 0, LEAT_UINT8, 3, shape, pixels);
    return status ? status
                  : leat_sample_set(sample, 1, LEAT_INT32, 0, NULL,
                                    pixels + LAYER_FIXTURE_PIXELS);
}

static int stream_reset(void *pass)
{
    *(int *)pass = 0;
    return LEAT_OK;
}

static leat_pipeline *stream(void)
{
    static const leat_field_spec fields[] = {
        {.name = "data", .dtype = LEAT_UINT8, .ndim = 3, .shape = {2, 5, 6}},
        {.name = "label", .dtype = LEAT_INT32}};
    const leat_callbacks callbacks = {.size = sizeof(callbacks),
                                      .fields = fields,
                                      .nfields = 2,
                                      .open = stream_open,
                                      .next = stream_next,
                                      .reset = stream_reset,
                                      .close = free};
    leat_pipeline *made;
    ck_assert_int_eq(leat_pipeline_callback(&made, &callbacks, NULL), LEAT_OK);
    return made;
}

static leat_pipeline *bad_ones(bad_records_way way)
{
    static bad_records records[BAD_RECORDS_WAYS];
    records[way] = (bad_records){.count = RECORDS, .way = way};
    records[way].kind[3] = BAD_RECORDS_UNREADABLE;
    records[way].kind[8] = BAD_RECORDS_SHAPELESS;
    records[way].kind[14] = BAD_RECORDS_UNREADABLE;
    return bad_records_pipeline(&records[way]);
}

static leat_pipeline *by_index(const leat_reader_type *type)
{
    leat_pipeline *upstream = layer_fixture_pipeline();
    leat_pipeline *made;
    ck_assert_int_eq(
        leat_pipeline_create(&made, type, "seed=5", NULL, NULL, &upstream, 1),
        LEAT_OK);
    leat_pipeline_unref(upstream);
    return made;
}

static leat_pipeline *zipped(void)
{
    leat_pipeline *const both[] = {
        stream_decorators_take(STREAM_FILTER, stream()),
        stream_decorators_take(STREAM_ROTATE, layer_fixture_pipeline())};
    leat_pipeline *made = stream_decorators_over(STREAM_ZIP, both, 2);
    leat_pipeline_unref(both[0]);
    leat_pipeline_unref(both[1]);
    return made;
}

leat_pipeline *layer_chains_make(int kind)
{
    switch (kind) {
    case 0:
        return by_index(index_decorators_shuffle());
    case 1:
        return by_index(index_decorators_turn());
    case 2:
        return stream();
    case 3:
        return stream_decorators_take(STREAM_END, layer_fixture_pipeline());
    case LAYER_CHAINS_MARKED:
        return stream_decorators_take(STREAM_FILTER, layer_fixture_pipeline());
    case 5:
        return stream_decorators_take(STREAM_ROTATE, layer_fixture_pipeline());
    case 6:
        return stream_decorators_take(
            STREAM_ROTATE, stream_decorators_take(STREAM_FILTER, stream()));
    case LAYER_CHAINS_SHORT:
        return stream_decorators_take(
            STREAM_FILTER, stream_decorators_take(STREAM_END, stream()));
    case 8:
        return stream_decorators_take(STREAM_FILTER,
                                      bad_ones(BAD_RECORDS_DEFERRED));
    case 9:
        return stream_decorators_take(STREAM_ROTATE,
                                      bad_ones(BAD_RECORDS_DEFERRED));
    case 10:
        return stream_decorators_take(
            STREAM_FILTER, stream_decorators_take(
                               STREAM_ROTATE, bad_ones(BAD_RECORDS_IN_ORDER)));
    default:
        return zipped();
    }
}
