/* image_reader.h: the records of a database with their images decoded. */
#ifndef LEAT_TOOLS_DELIVERY_IMAGE_READER_H
#define LEAT_TOOLS_DELIVERY_IMAGE_READER_H

#include <leat/reader.h>
#include <leat/transform.h>

/* Zeroed memory is closed. */
struct image_reader {
    leat_reader *reader;
    leat_transformer *transformer;
    leat_sample sample; /* the current record */
    float *image;       /* of image_reader_decode, in planes */
    size_t capacity;    /* values that it has room for */
};

/* `max_image_bytes` 0: the default. Errors: those of LMDBs, LEAT_ENOMEM. */
int image_reader_open(struct image_reader *out, const char *path,
                      size_t max_image_bytes);
/* The same over any pipeline. Errors: those of its readers, LEAT_ENOMEM. */
int image_reader_open_pipeline(struct image_reader *out,
                               const leat_pipeline *pipeline);
void image_reader_close(struct image_reader *reader);

/* Decodes the current record's image; its shape goes to `shape`. Errors:
   LEAT_EDATA, LEAT_ENOMEM. */
int image_reader_decode(struct image_reader *reader, int shape[3]);

/* How a Datum stores its image: raw, float, jpeg, png or other. */
const char *image_reader_encoding(const leat_field *data);

/*
 * Prefixes the thread's error line with its subject: the source and the key,
 * unless they are NULL, and the number, unless it is below 0. Returns `status`.
 */
int image_reader_name(int status, const char *source, int64_t number,
                      const void *key, size_t key_size);

#endif
