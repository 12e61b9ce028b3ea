/* files.h: the names of files. */
#ifndef LEAT_READERS_FILES_H
#define LEAT_READERS_FILES_H

#include <leat/ext/reader.h>

extern const leat_reader_type leat__files_reader_type;

#endif
