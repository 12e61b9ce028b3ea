/* shuffle.h: the forms of shuffle. */
#ifndef LEAT_DECORATORS_SHUFFLE_SHUFFLE_H
#define LEAT_DECORATORS_SHUFFLE_SHUFFLE_H

#include <leat/ext/reader.h>

#include <stdbool.h>

/* What all forms are opened with. */
typedef struct leat__shuffle_options {
    uint64_t seed;
    bool each_epoch; /* another order in each epoch */
    int64_t size;    /* of a block, or of the buffer, in samples; 0: all */
} leat__shuffle_options;

/* The epoch whose order is that of `epoch`. */
static inline int64_t leat__shuffle_epoch(const leat__shuffle_options *options,
                                          int64_t epoch)
{
    return options->each_epoch ? epoch : 0;
}

/* Index maps, of all samples or of blocks. Errors: LEAT_EUNSUPPORTED over
 * readers without random access or an end. */
int leat__shuffle_map_open(const leat_open *open,
                           const leat__shuffle_options *options,
                           leat_reader **out);

/* The parts of the upstream reader, such as files, in another order. Errors:
 * LEAT_EUNSUPPORTED for a reader without them. */
int leat__shuffle_files_open(const leat_open *open,
                             const leat__shuffle_options *options,
                             leat_reader **out);

/* The streaming buffer. */
int leat__shuffle_buffer_open(const leat_open *open,
                              const leat__shuffle_options *options,
                              leat_reader **out);

#endif
