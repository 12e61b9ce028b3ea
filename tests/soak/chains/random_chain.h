/* random_chain.h: a random chain of readers, its text, and what it gives. */
#ifndef LEAT_TESTS_CHAINS_RANDOM_CHAIN_H
#define LEAT_TESTS_CHAINS_RANDOM_CHAIN_H

#include "inputs.h"

#include <stdbool.h>

/* What samples are, in all of a chain. */
typedef enum chain_fields {
    CHAIN_LINES,   /* line: bytes */
    CHAIN_NUMBERS, /* label: int32; x: 3 of float32 */
    CHAIN_VALUES,  /* value: int64 */
    CHAIN_FIELDS
} chain_fields;

enum { CHAIN_TEXT = 1 << 14, CHAIN_ITEMS = 2048, CHAIN_CHILDREN = 3 };

/* A sample by the ID that it begins with. */
typedef struct chain_item {
    int id;
    bool is_bad;
} chain_item;

typedef struct chain_list {
    int n;
    bool is_cut; /* there may be more */
    chain_item item[CHAIN_ITEMS];
} chain_list;

typedef struct chain_node chain_node;

typedef struct chain {
    chain_fields fields;
    input input[INPUTS];
    chain_node *root;
    bool is_grouped;   /* samples are groups of those of the root */
    bool is_unordered; /* another order each time */
    bool keeps_files;  /* a cache directory is left after an epoch */
    char text[CHAIN_TEXT];
} chain;

void chain_make(chain *made);
void chain_free(chain *made);

/* Its files get other records; its text stays. */
void chain_replace_files(chain *made);

/* Some of its files get wrong bytes. What it gives is not known any more. */
void chain_damage_files(chain *made);

/* What an epoch gives, by slow rules of each decorator's. Whether it is known:
   not over what is random, nor for bad records in groups. */
bool chain_expect(const chain *made, int epoch, chain_list *out);

/* Ends the process if it does not hold; of chains.c. */
void chain_require(bool holds, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
