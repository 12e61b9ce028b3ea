/* suggestion.h: the known word that a mistyped one resembles. */
#ifndef LEAT_BASE_SUGGESTION_H
#define LEAT_BASE_SUGGESTION_H

typedef struct leat__suggestion {
    const char *word; /* as typed */
    const char *best; /* the nearest known word so far; NULL: none is near */
    int distance;     /* from it */
} leat__suggestion;

/* Begins the search for `word`, which is borrowed. */
leat__suggestion leat__suggestion_of(const char *word);

/*
 * Considers a known word, which is borrowed. Insertions, deletions,
 * substitutions and swaps of neighbours count one each; near is a third of the
 * longer word's letters, and of equally near words the first one stays.
 */
void leat__suggestion_consider(leat__suggestion *suggestion, const char *known);

/*
 * Writes "; did you mean PREFIXWORD?" to `out`, or "" where no word is near.
 * Returns `out`.
 */
const char *leat__suggestion_write(const leat__suggestion *suggestion,
                                   const char *prefix, char *out, int size);

#endif
