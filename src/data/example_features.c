/* Lists what an Example or a SequenceExample has. */
#include "data/example_wire.h"

#include <leat/example.h>

static leat_dtype type_of(leat__feature_kind kind)
{
    return kind == LEAT__FEATURE_BYTES    ? LEAT_BYTES
           : kind == LEAT__FEATURE_FLOATS ? LEAT_FLOAT32
                                          : LEAT_INT64;
}

/* A step of `count` values, of which there are some before it. */
static void add_step(leat_example_feature *out, int64_t count)
{
    out->fewest = out->steps == 0 || count < out->fewest ? count : out->fewest;
    out->most = count > out->most ? count : out->most;
    out->steps++;
}

/* The pieces of a feature are one step. Its type is `*kind`, NONE: no value. */
static int describe(leat_example_feature *out, leat__feature_kind *kind,
                    const void *message, const leat__feature_entry *entry)
{
    leat__feature_iterator iterator;
    leat__feature_values values = {.kind = LEAT__FEATURE_NONE};
    uint32_t map =
        out->is_sequence ? LEAT__EXAMPLE_LISTS : LEAT__EXAMPLE_FEATURES;
    leat__wire feature;
    int status;
    *kind = LEAT__FEATURE_NONE;
    leat__feature_begin(&iterator, message, entry, map);
    while ((status = leat__feature_next(&iterator, &feature)) == LEAT_OK) {
        if (out->is_sequence)
            values = (leat__feature_values){.kind = LEAT__FEATURE_NONE};
        status = leat__feature_add(&values, feature);
        if (status)
            return status;
        if (values.kind != LEAT__FEATURE_NONE)
            *kind = values.kind;
        if (out->is_sequence)
            add_step(out, (int64_t)values.count);
    }
    if (!out->is_sequence)
        add_step(out, (int64_t)values.count);
    out->dtype = type_of(*kind);
    return status == LEAT_END ? LEAT_OK : status;
}

int leat_example_features(leat_example_feature out[], int n, int64_t *found,
                          const void *message, size_t size)
{
    leat__example_walk walk;
    leat__feature_key key;
    leat__feature_entry entry;
    int status;
    *found = 0;
    leat__example_walk_begin(&walk, message, size);
    while ((status = leat__example_walk_next(&walk, &key, &entry)) == LEAT_OK) {
        leat__feature_kind kind;
        leat_example_feature one = {
            .name = key.name,
            .name_size = key.size,
            .is_sequence = key.map == LEAT__EXAMPLE_LISTS,
        };
        status = describe(&one, &kind, message, &entry);
        if (status)
            return status;
        if (kind == LEAT__FEATURE_NONE)
            continue;
        if (*found < n)
            out[*found] = one;
        ++*found;
    }
    return status == LEAT_END ? LEAT_OK : status;
}
