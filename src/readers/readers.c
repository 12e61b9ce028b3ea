/* The readers that come with leat: a new one is named here. */
#include "pipeline/registry.h"
#include "readers/lmdb/lmdb.h"

#include <stddef.h>

const leat_reader_type *const leat__readers[] = {
    &leat__lmdb_reader_type,
    NULL,
};
