/* idx.h: IDX, the files of MNIST. */
#ifndef LEAT_READERS_IDX_H
#define LEAT_READERS_IDX_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__idx_reader_type;

#endif
