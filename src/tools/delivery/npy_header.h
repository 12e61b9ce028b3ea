/* npy_header.h: what a NumPy .npy file holds. */
#ifndef LEAT_TOOLS_DELIVERY_NPY_HEADER_H
#define LEAT_TOOLS_DELIVERY_NPY_HEADER_H

#include <leat/status.h>

enum { NPY_MOST_DIMS = 16 };

struct npy_header {
    char kind; /* of elements: 'b', 'i', 'u' or 'f' */
    int bytes; /* of an element: 1, 2, 4 or 8 */
    int ndim;
    int64_t dim[NPY_MOST_DIMS]; /* in C order */
    size_t offset;              /* of the first element in the file */
    size_t count;               /* elements, all of them in the file */
};

/*
 * Reads the header of the file `name`, which is `size` bytes long, versions 1
 * to 3. Errors: LEAT_EFORMAT, saying what is wrong, or not supported:
 * structures, complex numbers, another byte order, Fortran's order.
 */
int npy_header_parse(struct npy_header *out, const char *name,
                     const void *bytes, size_t size);

/* The element of that number at `data`; long doubles hold all int64. */
long double npy_header_value(const struct npy_header *header, const void *data,
                             size_t i);

#endif
