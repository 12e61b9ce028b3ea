#include "pipeline/reader_form.h"
#include "pipeline/pipeline.h"

/* What decorators choose their own part of a mark by. */
static uint64_t abilities_of(leat_reader *reader)
{
    return (uint64_t)leat_reader_has_mark(reader) << 2 |
           (uint64_t)leat_reader_can_seek(reader) << 1 |
           (uint64_t)leat_reader_is_random_access(reader);
}

uint64_t leat__reader_form(leat_reader *reader, leat_reader *const upstream[],
                           int n)
{
    uint64_t own = abilities_of(reader) + 1;
    /* The mark of one without a mark is its position, whatever is below. */
    if (!leat_reader_has_mark(reader))
        return own;
    /* Its mark is the upstream reader's: a run may resume without it. */
    if (n == 1 && reader->pipeline->type->passes_on &&
        abilities_of(upstream[0]) + 1 == own)
        return upstream[0]->state->form;
    for (int i = 0; i < n; i++)
        own = (own ^ upstream[i]->state->form) * 0x100000001b3u + 1;
    return own ? own : 1;
}

int leat__reader_put_form(const leat_reader *reader, leat_token *token)
{
    const struct leat_reader_state *state = reader->state;
    return state->is_part
               ? LEAT_OK
               : leat_token_put(token, &state->form, sizeof(state->form));
}

int leat__reader_take_form(const leat_reader *reader, leat_token *mark)
{
    const struct leat_reader_state *state = reader->state;
    uint64_t form;
    if (state->is_part)
        return LEAT_OK;
    int status = leat_token_get(mark, &form, sizeof(form));
    if (status || form == state->form)
        return status;
    return leat_error(LEAT_EINVAL,
                      "the reader \"%s\": the mark is of another form, as "
                      "from before a directory of cache was there: go to "
                      "index 0, and skip what comes before",
                      reader->ops->name);
}
