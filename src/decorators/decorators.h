/* decorators.h: the types of leat's decorators. */
#ifndef LEAT_DECORATORS_DECORATORS_H
#define LEAT_DECORATORS_DECORATORS_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__batch_type;
extern const leat_reader_type leat__bucket_type;
extern const leat_reader_type leat__cache_type;
extern const leat_reader_type leat__cast_type;
extern const leat_reader_type leat__chain_type;
extern const leat_reader_type leat__columns_type;
extern const leat_reader_type leat__constant_type;
extern const leat_reader_type leat__datum_type;
extern const leat_reader_type leat__decode_type;
extern const leat_reader_type leat__drop_behind_type;
extern const leat_reader_type leat__example_type;
extern const leat_reader_type leat__interleave_type;
extern const leat_reader_type leat__merge_type;
extern const leat_reader_type leat__mix_type;
extern const leat_reader_type leat__prefetch_type;
extern const leat_reader_type leat__repeat_type;
extern const leat_reader_type leat__reshape_type;
extern const leat_reader_type leat__select_type;
extern const leat_reader_type leat__sequence_example_type;
extern const leat_reader_type leat__shard_type;
extern const leat_reader_type leat__share_type;
extern const leat_reader_type leat__shuffle_type;
extern const leat_reader_type leat__skip_type;
extern const leat_reader_type leat__take_type;
extern const leat_reader_type leat__transform_type;
extern const leat_reader_type leat__unbatch_type;
extern const leat_reader_type leat__where_type;
extern const leat_reader_type leat__window_type;
extern const leat_reader_type leat__zip_type;

#endif
