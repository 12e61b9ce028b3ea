/* tfrecord.h: TensorFlow's files of records. */
#ifndef LEAT_READERS_TFRECORD_H
#define LEAT_READERS_TFRECORD_H

#include "readers/record/record_format.h"

extern const leat_reader_type leat__tfrecord_reader_type;

/* The format, for tests. */
extern const leat__record_format_ops leat__tfrecord_format;

#endif
