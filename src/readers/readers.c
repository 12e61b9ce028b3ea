/* The built-in readers: a new one is added here. */
#include "pipeline/registry.h"
#include "readers/files.h"
#include "readers/fixed.h"
#include "readers/idx/idx.h"
#include "readers/lmdb/lmdb.h"
#include "readers/random_data.h"
#include "readers/range.h"
#include "readers/recordio/recordio.h"
#include "readers/text.h"
#include "readers/tfrecord.h"

#include <stddef.h>

/* clang-format off */
const leat_reader_type *const leat__readers[] = {
    &leat__files_reader_type,
    &leat__fixed_reader_type,
    &leat__idx_reader_type,
    &leat__lmdb_reader_type,
    &leat__random_type,
    &leat__range_type,
    &leat__recordio_reader_type,
    &leat__text_reader_type,
    &leat__tfrecord_reader_type,
    NULL,
};
/* clang-format on */
