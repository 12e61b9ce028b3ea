#include "base/option_list.h"
#include "base/ascii.h"
#include "base/decimal.h"
#include "base/error.h"

#include <leat/dtype.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of "A|B|C", one by one: moves *at to the next, returns its length,
   0 at the end. */
static size_t next_word(const char **at)
{
    *at += **at == '|';
    return strcspn(*at, "|");
}

static int dtype_of(const char *word, size_t length)
{
#define TRY(name, text, bytes)                                                 \
    if (length == strlen(text) && leat__ascii_begins_same(word, text, length)) \
        return LEAT_##name;
    LEAT_DTYPE_MAP(TRY)
#undef TRY
    return -1;
}

/* The number that the word at `index` of the option's stands for. */
static int word_number(const leat_option *option, int index, const char *word,
                       size_t length)
{
    if (option->type == LEAT_OPTION_WORD)
        return index;
    return option->type == LEAT_OPTION_DTYPE ? dtype_of(word, length) : -1;
}

static bool is_enum(const leat_option *option)
{
    return option->type == LEAT_OPTION_WORD ||
           option->type == LEAT_OPTION_DTYPE;
}

static bool is_integer(const leat_option *option)
{
    return option->type == LEAT_OPTION_INT ||
           option->type == LEAT_OPTION_INT64 ||
           option->type == LEAT_OPTION_BYTES;
}

/* Whether a number may be stored: one of a word, or within the range. */
static bool is_allowed(const leat_option *option, int64_t number)
{
    if (option->type == LEAT_OPTION_BOOL)
        return number == 0 || number == 1;
    const char *at = option->words ? option->words : "";
    size_t length;
    for (int i = 0; (length = next_word(&at)) > 0; at += length, i++)
        if (word_number(option, i, at, length) == number)
            return true;
    return is_integer(option) && number >= option->least &&
           number <= option->most;
}

static void *member_of(const leat_option *option, void *options)
{
    return (char *)options + option->offset;
}

static int64_t load(const leat_option *option, const void *options)
{
    const void *member = (const char *)options + option->offset;
    if (option->type == LEAT_OPTION_BOOL)
        return *(const bool *)member;
    if (option->type == LEAT_OPTION_INT64)
        return *(const int64_t *)member;
    if (option->type == LEAT_OPTION_BYTES) {
        size_t bytes = *(const size_t *)member;
        return bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
    }
    int number; /* an enum is as large */
    memcpy(&number, member, sizeof(number));
    return number;
}

static void store(const leat_option *option, void *options, int64_t number)
{
    void *member = member_of(option, options);
    int narrow = (int)number;
    if (option->type == LEAT_OPTION_BOOL)
        *(bool *)member = number != 0;
    else if (option->type == LEAT_OPTION_INT64)
        *(int64_t *)member = number;
    else if (option->type == LEAT_OPTION_BYTES)
        *(size_t *)member = (size_t)number;
    else
        memcpy(member, &narrow, sizeof(narrow));
}

static void set_given(const leat_option *option, void *options, bool given)
{
    if (option->given)
        *(bool *)((char *)options + option->given) = given;
}

const leat_option *leat__option_find(const leat_option list[], int n,
                                     const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

bool leat__option_take_number(const leat_option *option, void *options,
                              int64_t number)
{
    if (!is_allowed(option, number))
        return false;
    store(option, options, number);
    set_given(option, options, true);
    return true;
}

void leat__option_take_float(const leat_option *option, void *options,
                             float number)
{
    *(float *)member_of(option, options) = number;
    set_given(option, options, true);
}

bool leat__option_take_word(const leat_option *option, void *options,
                            const char *word)
{
    const char *at = option->words ? option->words : "";
    size_t length;
    for (int i = 0; (length = next_word(&at)) > 0; at += length, i++)
        if (length == strlen(word) && leat__ascii_begins_same(word, at, length))
            return leat__option_take_number(option, options,
                                            word_number(option, i, at, length));
    return false;
}

/* A finite decimal number, whatever the program's locale has for a point. */
static bool read_float(const char *text, float *out)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    if (!isdigit((unsigned char)digits[*digits == '.']))
        return false;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    char *end;
    float value = strtof_l(text, &end, c);
    freelocale(c);
    if (*end || !isfinite(value))
        return false;
    *out = value;
    return true;
}

static bool take_bool(const leat_option *option, void *options,
                      const char *text)
{
    bool is_true = leat__ascii_is_same(text, "true") || !strcmp(text, "1");
    if (!is_true && !leat__ascii_is_same(text, "false") &&
        strcmp(text, "0") != 0)
        return false;
    return leat__option_take_number(option, options, is_true);
}

bool leat__option_take_text(const leat_option *option, void *options,
                            const char *text)
{
    int64_t number;
    float real;
    switch (option->type) {
    case LEAT_OPTION_TEXT:
        if (*text)
            *(const char **)member_of(option, options) = text;
        return *text != 0;
    case LEAT_OPTION_BOOL:
        return take_bool(option, options, text);
    case LEAT_OPTION_FLOAT:
        if (!read_float(text, &real))
            return false;
        leat__option_take_float(option, options, real);
        return true;
    case LEAT_OPTION_OTHER:
        return false;
    default:
        return leat__option_take_word(option, options, text) ||
               (leat__decimal_quantity(text, option->type == LEAT_OPTION_BYTES,
                                       &number) &&
                leat__option_take_number(option, options, number));
    }
}

/* Appends to a text whose end is never beyond `size`. */
static void append(char *out, size_t size, const char *text, size_t length)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%.*s", (int)length, text);
}

/* "FAIL, ZERO or REPLACE" */
static void append_words(char *out, size_t size, const char *words)
{
    const char *at = words ? words : "";
    size_t length;
    while ((length = next_word(&at)) > 0) {
        const char *before = at == words ? "" : at[length] ? ", " : " or ";
        append(out, size, before, strlen(before));
        append(out, size, at, length);
        at += length;
    }
}

/* "1 to 1024 threads or AUTO" */
static void write_integers(char *out, size_t size, const leat_option *option)
{
    long long least = option->least, most = option->most;
    if (least == INT64_MIN)
        snprintf(out, size, "a whole number");
    else if (most == INT64_MAX)
        snprintf(out, size, "%lld or more", least);
    else
        snprintf(out, size, "%lld to %lld", least, most);
    if (option->unit) {
        append(out, size, " ", 1);
        append(out, size, option->unit, strlen(option->unit));
    }
    if (option->words) {
        append(out, size, " or ", 4);
        append_words(out, size, option->words);
    }
}

static const char *write_expected(char *out, size_t size,
                                  const leat_option *option)
{
    *out = 0;
    if (is_integer(option))
        write_integers(out, size, option);
    else if (is_enum(option))
        append_words(out, size, option->words);
    else
        snprintf(out, size, "%s",
                 option->type == LEAT_OPTION_BOOL    ? "true or false"
                 : option->type == LEAT_OPTION_FLOAT ? "a number"
                 : option->type == LEAT_OPTION_TEXT
                     ? "a text"
                     : "a list or struct, which is set in C");
    return out;
}

enum { EXPECTED_MAX = 128 };

const char *leat__option_fault(const leat_option *option, const char *text,
                               const char *shown,
                               char out[LEAT__OPTION_FAULT_MAX])
{
    char expected[EXPECTED_MAX];
    const char *renamed = option->renamed ? option->renamed : "";
    int length = (int)strcspn(renamed, "|");
    write_expected(expected, sizeof(expected), option);
    if (length > 0 && strlen(text) == (size_t)length &&
        leat__ascii_begins_same(renamed, text, (size_t)length))
        snprintf(out, LEAT__OPTION_FAULT_MAX,
                 "%.*s is called %s now; expected %s", length, renamed,
                 renamed + length + 1, expected);
    else
        snprintf(out, LEAT__OPTION_FAULT_MAX, "expected %s, found %s", expected,
                 shown);
    return out;
}

/* Whether the struct has a zero that stands for the default. */
static bool is_unset(const leat_option *option, const void *options)
{
    const char *base = options;
    if (option->given && *(const bool *)(base + option->given))
        return false;
    if (option->type == LEAT_OPTION_TEXT)
        return !*(const char *const *)(base + option->offset);
    if (option->type == LEAT_OPTION_FLOAT)
        return *(const float *)(base + option->offset) == 0;
    return option->type != LEAT_OPTION_OTHER && load(option, options) == 0;
}

void leat__option_complete(const leat_option list[], int n, void *options)
{
    for (int i = 0; i < n; i++)
        if (list[i].initial && is_unset(&list[i], options)) {
            (void)leat__option_take_text(&list[i], options, list[i].initial);
            set_given(&list[i], options, false);
        }
}

static int check_number(const leat_option *option, int64_t number)
{
    char expected[EXPECTED_MAX], found[32];
    if (is_allowed(option, number))
        return LEAT_OK;
    if (option->type == LEAT_OPTION_DTYPE && number >= 0 && number <= INT_MAX &&
        leat_dtype_size((leat_dtype)number))
        snprintf(found, sizeof(found), "%s",
                 leat_dtype_name((leat_dtype)number));
    else
        snprintf(found, sizeof(found), "%lld", (long long)number);
    return leat_error(LEAT_EINVAL, "%s is %s: expected %s", option->name, found,
                      write_expected(expected, sizeof(expected), option));
}

int leat__option_check(const leat_option list[], int n, const void *options)
{
    int status = LEAT_OK;
    for (int i = 0; i < n && !status; i++)
        if ((is_integer(&list[i]) || is_enum(&list[i])) &&
            !is_unset(&list[i], options))
            status = check_number(&list[i], load(&list[i], options));
    return status;
}

int leat_option_set(const leat_option *option, void *options, const char *text)
{
    char fault[LEAT__OPTION_FAULT_MAX], shown[LEAT__KEY_TEXT_MAX + 2];
    char printable[LEAT__KEY_TEXT_MAX];
    size_t size;
    memcpy(&size, options, sizeof(size));
    if (option->offset >= size || option->given >= size)
        return leat_error(LEAT_EINVAL,
                          "%s: the options struct has size %zu and lacks it: "
                          "expected the size of a later leat's",
                          option->name, size);
    if (leat__option_take_text(option, options, text))
        return LEAT_OK;
    snprintf(shown, sizeof(shown), "'%s'",
             leat__key_text(printable, text, strlen(text)));
    return leat_error(LEAT_EINVAL, "%s: %s", option->name,
                      leat__option_fault(option, text, shown, fault));
}

int leat__option_set(const leat_option list[], int n, const char *what,
                     void *options, const char *name, const char *text)
{
    const leat_option *option = leat__option_find(list, n, name);
    if (!option)
        return leat_error(LEAT_EINVAL, "%s has no option '%s'", what, name);
    return leat_option_set(option, options, text);
}
