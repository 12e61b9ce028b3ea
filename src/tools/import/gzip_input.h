/* gzip_input.h: a file or pipe, read in order and decompressed if it is gzip.
 */
#ifndef LEAT_TOOLS_IMPORT_GZIP_INPUT_H
#define LEAT_TOOLS_IMPORT_GZIP_INPUT_H

#include <leat/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <zlib.h>

enum gzip_part { GZIP_BEGIN, GZIP_PLAIN, GZIP_MEMBER, GZIP_BETWEEN, GZIP_REST };

/* Owned by the caller; zeroed: none is open. */
struct gzip_input {
    const char *path;
    int fd;
    bool has_ended; /* nothing follows the input that z has */
    bool is_cut;    /* bytes other than zeros follow the last member */
    enum gzip_part part;
    z_stream z;
    unsigned char *buffer; /* of input; NULL: none is open */
    struct stat opened;    /* what it was then */
};

/*
 * Opens a file; `path` is borrowed until close. Errors: LEAT_EIO; LEAT_ENOMEM.
 */
int gzip_input_open(struct gzip_input *input, const char *path);

/*
 * Reads `size` bytes, fewer at the end: *got. What follows the last member of
 * gzip and is none is passed by, see is_cut. Errors: LEAT_EIO; LEAT_EFORMAT for
 * damaged gzip data; LEAT_ECANCELLED for a signal; LEAT_ENOMEM.
 */
int gzip_input_read(struct gzip_input *input, void *out, size_t size,
                    size_t *got);

/*
 * That nobody wrote the file since it was opened, by its size and time of
 * modification; a pipe passes. Errors: LEAT_EFORMAT, LEAT_EIO.
 */
int gzip_input_check(const struct gzip_input *input);

void gzip_input_close(struct gzip_input *input);

#endif
