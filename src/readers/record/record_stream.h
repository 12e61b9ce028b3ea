/* record_stream.h: the reader over files of a format that are read in order. */
#ifndef LEAT_READERS_RECORD_STREAM_H
#define LEAT_READERS_RECORD_STREAM_H

#include "readers/file_list.h"
#include "readers/record/record_format.h"
#include "readers/stream/byte_stream.h"

/* Those arguments of a format that are for streams. */
/* clang-format off */
#define LEAT__STREAM_ARGUMENTS                                                 \
    {.name = "compression", .kind = LEAT_ARGUMENT_WORD, .initial = "AUTO",     \
     .words = LEAT__COMPRESSION_WORDS, .keeps_samples = 1,                     \
     .help = LEAT__COMPRESSION_HELP},                                          \
    {.name = "max_record", .kind = LEAT_ARGUMENT_BYTES, .initial = "64M",      \
     .min = 1, .max = (int64_t)1 << 40, .keeps_samples = 1,                    \
     .help = "bytes of the longest record of a compressed file or pipe, and "  \
             "of any line of text"}
/* clang-format on */

/*
 * Opens a reader over files of any kind. On success the format and the list are
 * the reader's, and `files` is empty. Errors: LEAT_EIO for a file that cannot
 * be read; LEAT_ENOMEM.
 */
int leat__record_stream_open(const leat_open *open, leat__record_format *format,
                             leat__file_list *files, leat_reader **out);

#endif
