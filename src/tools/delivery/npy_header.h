/* npy_header.h: the type and shape of NumPy's .npy files. */
#ifndef LEAT_TOOLS_DELIVERY_NPY_HEADER_H
#define LEAT_TOOLS_DELIVERY_NPY_HEADER_H

#include <leat/dtype.h>

#include <stdbool.h>

enum { NPY_MAX_DIMS = 16 };

struct npy_header {
    char kind;        /* of elements: 'b', 'i', 'u' or 'f' */
    int bytes;        /* of an element: 1, 2, 4 or 8 */
    bool is_bfloat16; /* known to be bits of such numbers; then 'u' */
    int ndim;
    int64_t dim[NPY_MAX_DIMS]; /* in C order */
    size_t count;              /* elements */
    size_t offset;             /* of the data in the file */
};

/*
 * Parses the `size` bytes of a file. It must have all elements that the header
 * promises. Errors: LEAT_EFORMAT, naming the file.
 */
int npy_header_parse(struct npy_header *out, const char *name,
                     const void *bytes, size_t size);

/* The header of an array in memory; bfloat16 is given by its bits, 'u'. */
struct npy_header npy_header_of(leat_dtype dtype, int ndim,
                                const int64_t shape[]);

/* Element `i` of the data, in C order; of bfloat16 the bits. */
long double npy_header_value(const struct npy_header *header, const void *data,
                             size_t i);

/* The number whose bits as bfloat16 are element `i`, of 2 bytes. */
long double npy_header_bfloat16(const void *data, size_t i);

#endif
