/* lmdb.h: the reader `lmdb:PATH`, Datums of Caffe's LMDB in key order. */
#ifndef LEAT_READERS_LMDB_H
#define LEAT_READERS_LMDB_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__lmdb_reader_type;

#endif
