/* idx.h: the IDX files of MNIST, plain or gzipped. */
#ifndef LEAT_TOOLS_IMPORT_IDX_H
#define LEAT_TOOLS_IMPORT_IDX_H

#include <leat/status.h>

/* The magic numbers: unsigned bytes in three dimensions, and in one. */
enum { IDX_IMAGES = 2051, IDX_LABELS = 2049 };

struct idx_file;

/*
 * Opens a file of that magic number and reads its header; `path` is borrowed
 * until close. Errors: LEAT_EIO, LEAT_EFORMAT, LEAT_ENOMEM.
 */
int idx_open(struct idx_file **out, const char *path, int magic);

int64_t idx_count(const struct idx_file *file);
/* Of an image; 1 x 1 for labels. */
int idx_rows(const struct idx_file *file);
int idx_columns(const struct idx_file *file);

/*
 * The next item, rows x columns bytes; borrowed until the next call. LEAT_END
 * after the last one. Errors: LEAT_EFORMAT for a file that is shorter or longer
 * than its header says, LEAT_EIO.
 */
int idx_next(struct idx_file *file, const unsigned char **item);

/* Takes NULL. */
void idx_close(struct idx_file *file);

#endif
