#include "config/net_state.h"
#include "config/net_schema.h"

#include <stdbool.h>
#include <string.h>

/* More stages than any net has would make matching rules take long. */
#define STAGES_MAX 64

typedef leat__prototxt_field field;

static int check_own(const leat__prototxt *file, const field *own)
{
    const field *twice = leat__prototxt_find_next(own);
    if (twice)
        return leat__prototxt_error(file, twice->at,
                                    "state is given twice in the net");
    if (own->type != LEAT__PROTOTXT_MESSAGE || own->is_listed)
        return leat__prototxt_error(file, own->value_at, "state: expected {");
    const field *stage = leat__prototxt_find(own, "stage");
    int stages = 0;
    for (; stage; stage = leat__prototxt_find_next(stage))
        if (++stages > STAGES_MAX)
            return leat__prototxt_error(
                file, stage->at, "expected at most %d stages, found more",
                STAGES_MAX);
    return leat__net_schema_check(file, own, &leat__net_schema_state);
}

int leat__net_state_read(leat__net_state *out, const leat__prototxt *file,
                         leat_phase phase, const char *const *stages, int level)
{
    leat__net_state state = {file, phase, level, NULL, stages};
    state.own = leat__prototxt_find(&file->root, "state");
    if (state.own) {
        int status = check_own(file, state.own);
        const field *own = leat__prototxt_find(state.own, "level");
        int32_t found = 0;
        if (!status && own)
            status = leat__prototxt_int32(file, own, &found);
        if (status)
            return status;
        if (!level)
            state.level = found;
    }
    *out = state;
    return LEAT_OK;
}

/* Names may hold NULs, so their sizes are compared as well. */
static bool is_equal(const field *a, const char *text, size_t size)
{
    return a->text_size == size && !memcmp(a->text, text, size);
}

static bool has_stage(const leat__net_state *state, const field *wanted)
{
    const field *own =
        state->own ? leat__prototxt_find(state->own, "stage") : NULL;
    for (; own; own = leat__prototxt_find_next(own))
        if (is_equal(wanted, own->text, own->text_size))
            return true;
    for (int i = 0; state->stages && state->stages[i]; i++)
        if (is_equal(wanted, state->stages[i], strlen(state->stages[i])))
            return true;
    return false;
}

/* Whether each stage of that name in a rule is given (`is_wanted`), or none is.
 */
static bool meets_stages(const leat__net_state *state, const field *rule,
                         const char *name, bool is_wanted)
{
    const field *stage = leat__prototxt_find(rule, name);
    for (; stage; stage = leat__prototxt_find_next(stage))
        if (has_stage(state, stage) != is_wanted)
            return false;
    return true;
}

static bool meets_rule(const leat__net_state *state, const field *rule)
{
    const field *given = leat__prototxt_find(rule, "phase");
    int phase = (int)state->phase;
    int32_t level = state->level;
    /* The schema was checked, so that these cannot fail. */
    if (given && (leat__prototxt_enum_value(state->file, given,
                                            leat__net_schema_phase, &phase) ||
                  phase != (int)state->phase))
        return false;
    given = leat__prototxt_find(rule, "min_level");
    if (given && (leat__prototxt_int32(state->file, given, &level) ||
                  state->level < level))
        return false;
    given = leat__prototxt_find(rule, "max_level");
    if (given && (leat__prototxt_int32(state->file, given, &level) ||
                  state->level > level))
        return false;
    return meets_stages(state, rule, "stage", true) &&
           meets_stages(state, rule, "not_stage", false);
}

static bool meets_any(const leat__net_state *state, const field *rule)
{
    for (; rule; rule = leat__prototxt_find_next(rule))
        if (meets_rule(state, rule))
            return true;
    return false;
}

int leat__net_state_includes(const leat__net_state *state, const field *layer,
                             bool *out)
{
    const field *include = leat__prototxt_find(layer, "include");
    const field *exclude = leat__prototxt_find(layer, "exclude");
    if (include && exclude)
        return leat__prototxt_error(
            state->file, exclude->at,
            "expected include or exclude rules, found both in a layer");
    *out = include ? meets_any(state, include) : !meets_any(state, exclude);
    return LEAT_OK;
}
