/* leat's decorators: a new one is added here. */
#include "decorators/decorators.h"
#include "pipeline/registry.h"

#include <stddef.h>

/* clang-format off */
const leat_reader_type *const leat__decorators[] = {
    &leat__batch_type,
    &leat__bucket_type,
    &leat__cache_type,
    &leat__cast_type,
    &leat__chain_type,
    &leat__columns_type,
    &leat__constant_type,
    &leat__datum_type,
    &leat__decode_type,
    &leat__drop_behind_type,
    &leat__example_type,
    &leat__interleave_type,
    &leat__merge_type,
    &leat__mix_type,
    &leat__prefetch_type,
    &leat__repeat_type,
    &leat__reshape_type,
    &leat__select_type,
    &leat__sequence_example_type,
    &leat__shard_type,
    &leat__share_type,
    &leat__shuffle_type,
    &leat__skip_type,
    &leat__take_type,
    &leat__transform_type,
    &leat__unbatch_type,
    &leat__where_type,
    &leat__window_type,
    &leat__zip_type,
    NULL,
};
/* clang-format on */
