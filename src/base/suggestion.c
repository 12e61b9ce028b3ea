#include "base/suggestion.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longer words are not mistyped names of this tool. */
enum { MOST_LETTERS = 40 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The optimal string alignment of both words, of MOST_LETTERS at most. */
static int distance_of(const char *a, int a_size, const char *b, int b_size)
{
    int row[3][MOST_LETTERS + 1]; /* of the last three letters of `a` */
    for (int k = 0; k <= b_size; k++)
        row[0][k] = k;
    for (int i = 1; i <= a_size; i++) {
        int *now = row[i % 3];
        const int *before = row[(i + 2) % 3], *second = row[(i + 1) % 3];
        now[0] = i;
        for (int k = 1; k <= b_size; k++) {
            bool differs = a[i - 1] != b[k - 1];
            now[k] = least(before[k] + 1, now[k - 1] + 1);
            now[k] = least(now[k], before[k - 1] + differs);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                now[k] = least(now[k], second[k - 2] + 1);
        }
    }
    return row[a_size % 3][b_size];
}

leat__suggestion leat__suggestion_of(const char *word)
{
    return (leat__suggestion){word, NULL, MOST_LETTERS};
}

void leat__suggestion_consider(leat__suggestion *suggestion, const char *known)
{
    size_t typed = strlen(suggestion->word), size = strlen(known);
    if (typed < 2 || typed > MOST_LETTERS || size > MOST_LETTERS)
        return;
    int near = (int)(typed > size ? typed : size) / 3;
    int distance = distance_of(suggestion->word, (int)typed, known, (int)size);
    if (distance > (near ? near : 1) || distance >= suggestion->distance)
        return;
    suggestion->best = known;
    suggestion->distance = distance;
}

const char *leat__suggestion_write(const leat__suggestion *suggestion,
                                   const char *prefix, char *out, int size)
{
    *out = 0;
    if (suggestion->best)
        snprintf(out, (size_t)size, "; did you mean %s%s?", prefix,
                 suggestion->best);
    return out;
}
