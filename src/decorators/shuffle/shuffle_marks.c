#include "decorators/shuffle/shuffle_marks.h"

void leat__shuffle_marks_init(leat__shuffle_marks *marks, int64_t interval)
{
    marks->interval = interval > 0 ? interval : 1;
    marks->n = 0;
    for (int i = 0; i < LEAT__SHUFFLE_MARKS; i++)
        leat_token_init(&marks->mark[i].token);
}

void leat__shuffle_marks_finish(leat__shuffle_marks *marks)
{
    for (int i = 0; i < LEAT__SHUFFLE_MARKS; i++)
        leat_token_finish(&marks->mark[i].token);
}

int leat__shuffle_marks_are_due(const leat__shuffle_marks *marks, int64_t input)
{
    return marks->n == 0 ||
           input >= marks->mark[marks->n - 1].input + marks->interval;
}

/* Moves one to a place before it; the memory of that one is kept. */
static void move(leat__shuffle_marks *marks, int to, int from)
{
    leat__shuffle_mark kept = marks->mark[to];
    marks->mark[to] = marks->mark[from];
    marks->mark[from] = kept;
}

static void drop_before(leat__shuffle_marks *marks, int64_t oldest)
{
    int first = 0;
    while (first + 1 < marks->n && marks->mark[first + 1].input <= oldest)
        first++;
    for (int i = first; i < marks->n && first > 0; i++)
        move(marks, i - first, i);
    marks->n -= first;
}

static void drop_every_second(leat__shuffle_marks *marks)
{
    for (int i = 2; i < marks->n; i += 2)
        move(marks, i / 2, i);
    marks->n = (marks->n + 1) / 2;
    marks->interval *= 2;
}

leat__shuffle_mark *leat__shuffle_marks_add(leat__shuffle_marks *marks,
                                            int64_t oldest, int64_t input)
{
    drop_before(marks, oldest);
    if (marks->n == LEAT__SHUFFLE_MARKS)
        drop_every_second(marks);
    leat__shuffle_mark *mark = &marks->mark[marks->n++];
    mark->input = input;
    mark->token.size = 0;
    return mark;
}
