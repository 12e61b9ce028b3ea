#include "support/decorator_chain.h"

#include <leat/ext/reader.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 512, UPSTREAM_MAX = 8 };

static const leat_reader_type *type_named(const char *name)
{
    const leat_reader_type *type;
    for (int i = 0; (type = leat_reader_type_at(i)) != NULL; i++)
        if (strcmp(type->name, name) == 0)
            return type;
    ck_abort_msg("there is no reader \"%s\"", name);
    return NULL;
}

/* One reader, "name:arguments", over others, which it takes. */
static leat_pipeline *make_one(const char *text, leat_pipeline *upstream[],
                               int n)
{
    char name[TEXT_MAX];
    leat_pipeline *made = NULL;
    snprintf(name, sizeof(name), "%s", text);
    name[strcspn(name, ": ")] = 0;
    const char *arguments = strchr(text, ':');
    int status = leat_pipeline_create(&made, type_named(name),
                                      arguments ? arguments + 1 : NULL, NULL,
                                      NULL, upstream, n);
    for (int i = 0; i < n; i++)
        leat_pipeline_unref(upstream[i]);
    return status ? NULL : made;
}

/* The end of the group that an opening parenthesis begins. */
static const char *group_end(const char *open)
{
    int depth = 0;
    for (const char *at = open;; at++) {
        ck_assert_msg(*at, "no parenthesis closes %s", open);
        depth += (*at == '(') - (*at == ')');
        if (depth == 0)
            return at;
    }
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " |");
}

/* A chain without its inputs: what stands before the next bar outside of
 * parentheses is copied to `one`. */
static const char *cut_one(const char *text, char one[TEXT_MAX])
{
    const char *end = text;
    while (*end && *end != '|')
        end = *end == '(' ? group_end(end) + 1 : end + 1;
    size_t n = (size_t)(end - text);
    ck_assert_uint_lt(n, TEXT_MAX);
    memcpy(one, text, n);
    while (n > 0 && one[n - 1] == ' ')
        n--;
    one[n] = 0;
    return end;
}

static leat_pipeline *make_chain(const char *text, leat_pipeline *base);

/* The inputs in parentheses. */
static int make_inputs(const char **text, leat_pipeline *base,
                       leat_pipeline *inputs[UPSTREAM_MAX])
{
    int n = 0;
    while (**text == '(') {
        char group[TEXT_MAX];
        const char *end = group_end(*text);
        snprintf(group, sizeof(group), "%.*s", (int)(end - *text - 1),
                 *text + 1);
        ck_assert_int_lt(n, UPSTREAM_MAX);
        inputs[n] = make_chain(group, base);
        ck_assert_msg(inputs[n], "%s: %s", group, leat_last_error());
        n++;
        *text = skip_blanks(end + 1);
    }
    return n;
}

/* `base` stays the caller's. */
static leat_pipeline *make_chain(const char *text, leat_pipeline *base)
{
    leat_pipeline *inputs[UPSTREAM_MAX];
    text = skip_blanks(text);
    int n = make_inputs(&text, base, inputs);
    if (n == 0) {
        text = skip_blanks(strncmp(text, "{}", 2) == 0 ? text + 2 : text);
        leat_pipeline_ref(base);
        inputs[n++] = base;
    }
    while (*text && inputs[0]) {
        char one[TEXT_MAX];
        text = skip_blanks(cut_one(text, one));
        inputs[0] = make_one(one, inputs, n);
        n = 1;
    }
    return inputs[0];
}

leat_pipeline *decorator_chain_make(const char *text, leat_pipeline *base)
{
    leat_pipeline *made = make_chain(text, base);
    leat_pipeline_unref(base);
    return made;
}
