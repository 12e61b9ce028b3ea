/* recordio.h: PaddlePaddle's RecordIO. */
#ifndef LEAT_READERS_RECORDIO_H
#define LEAT_READERS_RECORDIO_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__recordio_reader_type;

#endif
