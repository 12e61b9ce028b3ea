#include "tools/cli/option.h"

#include "base/decimal.h"
#include "base/error.h"
#include "base/suggestion.h"
#include "tools/cli/number.h"
#include "tools/cli/output.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Options of one command, --help included. */
enum { MOST_OPTIONS = 64 };

/* getopt_long's value of the first option, from which the others count on: two
   that shared a value would not be ambiguous by their common beginning. */
enum { KNOWN = 256 };

static const struct option_spec help_option = {
    "help", NULL, "print this and exit", NULL, NULL, 0, 0};

static void (*visitor)(const struct usage *usage);

void option_visit(void (*visit)(const struct usage *usage))
{
    visitor = visit;
}

static void print_option(const struct option_spec *option, int width)
{
    char left[64];
    snprintf(left, sizeof(left), "--%s%s%s", option->name,
             option->value ? " " : "", option->value ? option->value : "");
    printf("  %-*s  %s\n", width, left, option->help);
}

const struct option_spec *option_at(const struct usage *usage, int i)
{
    const struct option_spec *const tables[] = {usage->options, usage->shared};
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct option_spec *o = tables[t]; o && o->name; o++)
            if (i-- == 0)
                return o;
    return NULL;
}

static void print_help(const struct usage *usage)
{
    const struct option_spec *o;
    size_t width = strlen("--help");
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++) {
        size_t length = 2 + strlen(o->name);
        if (o->value)
            length += 1 + strlen(o->value);
        if (length > width)
            width = length;
    }
    printf("Usage: leat %s %s\n\n%s\n\nOptions:\n", usage->command,
           usage->arguments, usage->about);
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        print_option(o, (int)width);
    print_option(&help_option, (int)width);
}

/* What a value is, in words; NULL where its help does. */
static const char *describe_value(const struct option_spec *option)
{
    static const struct {
        option_reader *read;
        const char *words;
    } values[] = {{option_int, "a whole number"},
                  {option_bytes, "bytes, such as 65536 or 64K,"},
                  {option_seconds, "a time, such as 3 or 500ms, in seconds"},
                  {option_ms, "a time, such as 3 or 500us, in milliseconds"},
                  {option_real, "a number"},
                  {option_float, "a number"},
                  {option_shape, "three whole numbers C,H,W or CxHxW"},
                  {option_size, "two whole numbers H,W or HxW"}};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (values[i].read == option->read)
            return values[i].words;
    return NULL;
}

/* The values that a number may have, in words. */
static void write_range(char *out, size_t size,
                        const struct option_spec *option)
{
    long long least = option->least, most = option->most;
    if (least != most && most == INT64_MAX)
        snprintf(out, size, " from %lld on", least);
    else if (least != most)
        snprintf(out, size, " from %lld to %lld", least, most);
    else
        snprintf(out, size, "%s",
                 option->read == option_int ? " of 64 bits" : "");
}

static void read_option(const struct usage *usage,
                        const struct option_spec *option)
{
    char range[64], found[LEAT__KEY_TEXT_MAX];
    if (!option->read) {
        *(bool *)option->out = true;
        return;
    }
    int status = option->read(option, optarg);
    if (status == OPTION_ERROR_LINE)
        message_misuse(usage->command, "%s", leat_last_error());
    const char *words = describe_value(option);
    write_range(range, sizeof(range), option);
    if (status)
        leat__key_text(found, optarg, strlen(optarg));
    if (status && !words)
        message_misuse(usage->command, "--%s: expected %s, found '%s': %s",
                       option->name, option->value, found, option->help);
    if (status)
        message_misuse(usage->command, "--%s: expected %s%s, found '%s'",
                       option->name, words, range, found);
}

/* Whether a word, --NAME or --NAME=VALUE, begins more than one option. */
static bool begins_several(const struct usage *usage, const char *word)
{
    const struct option_spec *o;
    const char *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    int n = !strncmp(help_option.name, name, length);
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        n += !strncmp(o->name, name, length);
    return n > 1;
}

/* "; did you mean --NAME?" for a word that is no option; returns `out`. */
static const char *suggest(const struct usage *usage, const char *word,
                           char *out, int size)
{
    char name[64];
    const struct option_spec *o;
    word += strspn(word, "-");
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    leat__suggestion suggestion = leat__suggestion_of(name);
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        leat__suggestion_consider(&suggestion, o->name);
    leat__suggestion_consider(&suggestion, help_option.name);
    return leat__suggestion_write(&suggestion, "--", out, size);
}

/* Whether a word is --NAME or --NAME=VALUE. */
static bool is_named(const char *word, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(word, "--", 2) && !strncmp(word + 2, name, length) &&
           (!word[2 + length] || word[2 + length] == '=');
}

/* `word` is where getopt_long stopped; of several letters after one dash, only
   the last one moves it to the next word. */
_Noreturn static void refuse_option(const struct usage *usage, const char *word)
{
    const char *command = usage->command;
    const struct option_removed *removed = usage->removed;
    char letter[] = {'-', (char)optopt, 0}, nearest[64];
    if (optopt >= KNOWN || (optopt == 'h' && word[1] == '-'))
        message_misuse(command, "%.*s takes no value", (int)strcspn(word, "="),
                       word);
    if (!optopt && begins_several(usage, word))
        message_misuse(command, "%s: ambiguous option '%s'", command, word);
    if (!optopt && removed && is_named(word, removed->name))
        message_misuse(command, "%s: --%s no longer exists: %s", command,
                       removed->name, removed->advice);
    message_misuse(command, "%s: unknown option '%s'%s", command,
                   optopt ? letter : word,
                   suggest(usage, word, nearest, sizeof(nearest)));
}

static void check_arguments(const struct usage *usage, int n, char **arguments)
{
    const char *command = usage->command;
    if (n < usage->least_arguments)
        message_misuse(command, "%s: arguments are missing: leat %s %.*s",
                       command, command, (int)strcspn(usage->arguments, "\n"),
                       usage->arguments);
    if (n > usage->most_arguments)
        message_misuse(command, "%s: unexpected argument '%s'", command,
                       arguments[usage->most_arguments]);
}

char **option_parse(const struct usage *usage, int argc, char **argv)
{
    if (visitor) {
        visitor(usage);
        output_exit(0);
    }
    struct option known[MOST_OPTIONS + 1] = {{0}};
    const struct option_spec *o;
    int count = 0;
    for (; count < MOST_OPTIONS - 1 && (o = option_at(usage, count)); count++)
        known[count] =
            (struct option){o->name, o->read ? required_argument : no_argument,
                            NULL, KNOWN + count};
    known[count] = (struct option){"help", no_argument, NULL, 'h'};

    opterr = 0;
    optind = 1;
    int index = -1;
    for (int found;
         (found = getopt_long(argc, argv, ":hV", known, &index)) >= 0;
         index = -1) {
        if (found == 'h')
            print_help(usage);
        else if (found == 'V')
            message_version();
        else if (found == ':')
            message_misuse(usage->command, "%s needs a value",
                           argv[optind - 1]);
        else if (found == '?' || index < 0)
            refuse_option(usage, argv[optind - 1]);
        else
            read_option(usage, option_at(usage, index));
        if (found == 'h' || found == 'V')
            output_exit(0);
    }
    check_arguments(usage, argc - optind, argv + optind);
    return argv + optind;
}

int option_text(const struct option_spec *spec, const char *text)
{
    *(const char **)spec->out = text;
    return *text ? 0 : -1;
}

/* All of a text as a number within the option's bounds. */
static int read_bounded(const struct option_spec *spec, const char *text,
                        bool is_bytes)
{
    int64_t value;
    if (!leat__decimal_quantity(text, is_bytes, &value))
        return -1;
    if (spec->least != spec->most &&
        (value < spec->least || value > spec->most))
        return -1;
    *(int64_t *)spec->out = value;
    return 0;
}

int option_int(const struct option_spec *spec, const char *text)
{
    return read_bounded(spec, text, false);
}

int option_bytes(const struct option_spec *spec, const char *text)
{
    return read_bounded(spec, text, true);
}

static int store_real(const struct option_spec *spec, double value)
{
    if (spec->least != spec->most &&
        (value < (double)spec->least || value > (double)spec->most))
        return -1;
    *(double *)spec->out = value;
    return 0;
}

int option_real(const struct option_spec *spec, const char *text)
{
    char *end;
    double value;
    if (number_read_real(text, &end, &value) || *end)
        return -1;
    return store_real(spec, value);
}

int option_seconds(const struct option_spec *spec, const char *text)
{
    double value;
    return number_read_time(text, 1, &value) ? -1 : store_real(spec, value);
}

int option_ms(const struct option_spec *spec, const char *text)
{
    double value;
    return number_read_time(text, 1e-3, &value) ? -1 : store_real(spec, value);
}

int option_float(const struct option_spec *spec, const char *text)
{
    char *end;
    float value;
    if (number_read_float(text, &end, &value) || *end)
        return -1;
    *(float *)spec->out = value;
    return 0;
}

/* Numbers from 1 on, all separated by commas or all by an x. */
static int read_sides(const struct option_spec *spec, const char *text, int n)
{
    int side[3];
    char separator = 0;
    for (int i = 0; i < n; i++) {
        const char *end;
        int64_t value;
        if (!leat__decimal_quantity_begin(text, false, &end, &value) ||
            value < 1 || value > spec->most)
            return -1;
        char found = *end == 'X' ? 'x' : *end;
        if (!i)
            separator = found;
        if (i < n - 1 ? found != separator || !strchr(",x", found) : found != 0)
            return -1;
        side[i] = (int)value;
        text = end + 1;
    }
    memcpy(spec->out, side, (size_t)n * sizeof(*side));
    return 0;
}

int option_shape(const struct option_spec *spec, const char *text)
{
    return read_sides(spec, text, 3);
}

int option_size(const struct option_spec *spec, const char *text)
{
    return read_sides(spec, text, 2);
}

static int read_range(const struct option_spec *spec, const char *text,
                      bool is_bytes)
{
    int64_t range[2] = {0, INT64_MAX};
    const char *end = text;
    if (*text != ':' &&
        !leat__decimal_quantity_begin(text, is_bytes, &end, &range[0]))
        return -1;
    if (*end++ != ':')
        return -1;
    if (*end && !leat__decimal_quantity(end, is_bytes, &range[1]))
        return -1;
    /* B is the last of a range of bytes, and the end of others. */
    if (range[0] < 0 || range[1] < range[0] || range[1] == 0 ||
        (!is_bytes && range[1] == range[0]))
        return -1;
    memcpy(spec->out, range, sizeof(range));
    return 0;
}

int option_range(const struct option_spec *spec, const char *text)
{
    return read_range(spec, text, false);
}

int option_byte_range(const struct option_spec *spec, const char *text)
{
    return read_range(spec, text, true);
}
