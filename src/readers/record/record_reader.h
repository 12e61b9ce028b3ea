/*
 * record_reader.h: opens a reader over the files of a format.
 *
 * Plain files on storage are mapped (record_mapped.c); compressed ones, pipes
 * and `-` are a stream (record_stream.c).
 */
#ifndef LEAT_READERS_RECORD_READER_H
#define LEAT_READERS_RECORD_READER_H

#include "readers/file_list.h"
#include "readers/record/record_format.h"
#include "readers/record/record_stream.h"

/*
 * The arguments of every format, the first lines of its table: files by
 * position, so that the format's own are name=value.
 */
/* clang-format off */
#define LEAT__RECORD_ARGUMENTS                                                 \
    LEAT__FILES_ARGUMENT, LEAT__RECORD_OPTIONS

#define LEAT__FILES_ARGUMENT                                                   \
    {.name = "files", .positional = 1, .required = 1, .repeated = 1,           \
     .keeps_samples = 1, .help = LEAT__FILE_LIST_HELP}

#define LEAT__RECORD_OPTIONS                                                   \
    LEAT__STREAM_ARGUMENTS,                                                    \
    {.name = "index", .kind = LEAT_ARGUMENT_WORD, .initial = "MEMORY",         \
     .words = "MEMORY|KEEP", .keeps_samples = 1,                               \
     .help = "where records are looked up: MEMORY, or KEEP: a file beside "    \
             "each, .NAME.leat-index"},                                         \
    {.name = "read_ahead", .kind = LEAT_ARGUMENT_BYTES, .initial = "0",        \
     .min = -1, .max = INT64_MAX, .keeps_samples = 1,                          \
     .help = "read ahead of a cold file; 0: 32 MiB or the kernel's, "          \
             "-1: the kernel's"},                                              \
    {.name = "drop_behind", .kind = LEAT_ARGUMENT_NUMBER, .initial = "0",      \
     .max = 1, .keeps_samples = 1,                                             \
     .help = "1: pages that were read in order are dropped from memory"},      \
    {.name = "keep_behind", .kind = LEAT_ARGUMENT_BYTES, .initial = "0",       \
     .min = -1, .max = INT64_MAX, .keeps_samples = 1,                          \
     .help = "kept by drop_behind; 0: 64 MiB, -1: none"}
/* clang-format on */

/*
 * Opens a reader of `format` over the files that the arguments of `open` name.
 * The format is transferred, on failure too. Errors: LEAT_EIO for a file that
 * cannot be read, those of the format's begin, LEAT_ENOMEM.
 */
int leat__record_reader_open(const leat_open *open, leat__record_format *format,
                             leat_reader **out);

/* The same over the files of a list, which is transferred, on failure too. */
int leat__record_reader_open_files(const leat_open *open,
                                   leat__record_format *format,
                                   leat__file_list *files, leat_reader **out);

#endif
