/* record_mapped.h: the reader over mapped files of a format. */
#ifndef LEAT_READERS_RECORD_MAPPED_H
#define LEAT_READERS_RECORD_MAPPED_H

#include "readers/file_list.h"
#include "readers/record/record_format.h"

/*
 * Opens a reader over the files of `list`, at least one. On success it owns the
 * format and the list's paths, and the list is empty. Errors: as
 * leat__record_reader_open.
 */
int leat__record_mapped_open(const leat_open *open, leat__record_format *format,
                             leat__file_list *list, leat_reader **out);

#endif
