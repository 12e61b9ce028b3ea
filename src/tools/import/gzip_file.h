/* gzip_file.h: a file read from its beginning, gzipped or as it is. */
#ifndef LEAT_TOOLS_IMPORT_GZIP_FILE_H
#define LEAT_TOOLS_IMPORT_GZIP_FILE_H

#include <leat/status.h>

struct gzip_file;

/* `path` is borrowed until close. Errors: LEAT_EIO, LEAT_ENOMEM. */
int gzip_file_open(struct gzip_file **out, const char *path);

/*
 * Reads `size` bytes, or fewer at the end: *got. Errors: LEAT_EIO; LEAT_EFORMAT
 * for gzip data that are damaged or end early; LEAT_ECANCELLED for a signal
 * while a pipe has nothing; LEAT_ENOMEM.
 */
int gzip_file_read(struct gzip_file *file, void *out, size_t size, size_t *got);

const char *gzip_file_path(const struct gzip_file *file);

/* Takes NULL. */
void gzip_file_close(struct gzip_file *file);

#endif
