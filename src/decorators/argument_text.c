#include "decorators/argument_text.h"
#include "base/memory.h"

#include <leat/ext/reader.h>

#include <stdio.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL; NULL without memory. */
static char *grow(leat__argument_text *to, size_t more)
{
    if (to->status)
        return NULL;
    char *grown = leat__realloc(to->text, to->size + more + 1);
    if (!grown) {
        to->status = LEAT_ENOMEM;
        return NULL;
    }
    to->text = grown;
    to->size += more;
    return grown + to->size - more;
}

void leat__argument_text_add(leat__argument_text *to, const char *text)
{
    size_t size = strlen(text);
    char *at = grow(to, size);
    if (at)
        memcpy(at, text, size + 1);
}

void leat__argument_text_add_value(leat__argument_text *to, const char *value)
{
    size_t size = leat_args_escape(value, NULL, 0);
    char *at = grow(to, size - 1);
    if (at)
        leat_args_escape(value, at, size);
}

void leat__argument_text_add_number(leat__argument_text *to, const char *name,
                                    long long number)
{
    char text[96];
    snprintf(text, sizeof(text), "%s%s=%lld", to->size > 0 ? "," : "", name,
             number);
    leat__argument_text_add(to, text);
}

void leat__argument_text_finish(leat__argument_text *text)
{
    leat__free(text->text);
}
