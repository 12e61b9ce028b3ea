/* page_image.h: the bytes of an LMDB with pages of any size, built by hand. */
#ifndef LEAT_TESTS_PAGE_IMAGE_H
#define LEAT_TESTS_PAGE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

typedef struct page_image {
    unsigned char *bytes; /* the test frees them */
    size_t page_size;
    uint64_t pages;
    size_t lower, upper; /* of the page that is being filled */
} page_image;

/*
 * `n` records with keys "%08d". Page 2 is the first leaf; the first record of
 * each leaf has a value of a little over 2 pages, on 3 pages right after it,
 * the others one of 10 bytes.
 */
void page_image_build(page_image *out, size_t page_size, int n);

#endif
