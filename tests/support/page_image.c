#include "support/page_image.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *page_image_add(page_image *self, unsigned flags)
{
    self->bytes =
        realloc(self->bytes, (size_t)(self->pages + 1) * self->page_size);
    unsigned char *page = self->bytes + self->pages * self->page_size;
    memset(page, 0, self->page_size);
    uint64_t number = self->pages++;
    uint16_t stored = (uint16_t)flags;
    memcpy(page, &number, 8);
    memcpy(page + 10, &stored, 2);
    self->lower = 16;
    self->upper = self->page_size;
    return page;
}

/* Adds a node to the page; 0 when it is full. */
static int page_image_put(page_image *self, uint64_t page_number,
                          uint64_t header, const void *key, size_t key_size,
                          const void *value, size_t value_size)
{
    size_t size = (8 + key_size + value_size + 1) & ~(size_t)1;
    unsigned char *page = self->bytes + page_number * self->page_size;
    if (self->upper - self->lower < size + 2)
        return 0;
    self->upper -= size;
    uint16_t offset = (uint16_t)self->upper;
    header |= (uint64_t)key_size << 48;
    memcpy(page + self->lower, &offset, 2);
    self->lower += 2;
    memcpy(page + offset, &header, 8);
    memcpy(page + offset + 8, key, key_size);
    if (value_size)
        memcpy(page + offset + 8 + key_size, value, value_size);
    uint16_t lower = (uint16_t)self->lower;
    memcpy(page + 12, &lower, 2);
    memcpy(page + 14, &offset, 2);
    return 1;
}

static void page_image_finish(page_image *self, uint64_t depth,
                              uint64_t entries, uint64_t root)
{
    for (uint64_t i = 0; i < 2; i++) {
        unsigned char *page = self->bytes + i * self->page_size;
        uint32_t words[2] = {0xbeefc0de, 1};
        uint32_t page_size = (uint32_t)self->page_size;
        uint16_t levels = (uint16_t)depth;
        uint64_t tail[4] = {entries, root, self->pages - 1, i};
        memcpy(page + 16, words, 8);
        memcpy(page + 40, &page_size, 4);
        memcpy(page + 94, &levels, 2);
        memcpy(page + 120, tail, 16);
        memcpy(page + 136, tail + 2, 16);
    }
}

void page_image_build(page_image *self, size_t page_size, int n)
{
    static uint64_t child[20000];
    static char first[20000][16];
    int children = 0, depth = 1;
    char key[16];
    *self = (page_image){.page_size = page_size};
    page_image_add(self, 8);
    page_image_add(self, 8);
    for (int i = 0; i < n;) {
        uint64_t leaf = self->pages;
        sprintf(first[children], "%08d", i);
        child[children++] = leaf;
        page_image_add(self, 2);
        size_t big = 2 * page_size + 7;
        uint64_t behind = leaf + 1;
        sprintf(key, "%08d", i++);
        ck_assert(page_image_put(self, leaf, (uint64_t)1 << 32 | big, key, 8,
                                 &behind, 8));
        while (i < n) {
            sprintf(key, "%08d", i);
            if (!page_image_put(self, leaf, 10, key, 8, "0123456789", 10))
                break;
            i++;
        }
        unsigned char *page = page_image_add(self, 4);
        uint32_t pages = 3;
        memcpy(page + 12, &pages, 4);
        page_image_add(self, 0);
        page_image_add(self, 0);
    }
    for (; children > 1; depth++) {
        int parents = 0;
        for (int i = 0; i < children;) {
            uint64_t branch = self->pages;
            page_image_add(self, 1);
            int begin = i;
            while (i < children &&
                   page_image_put(self, branch, child[i], first[i],
                                  i == begin ? 0 : 8, NULL, 0))
                i++;
            memcpy(first[parents], first[begin], 16);
            child[parents++] = branch;
        }
        children = parents;
    }
    page_image_finish(self, (uint64_t)depth, (uint64_t)n, child[0]);
}
