/*
 * completion.c: `leat completion SHELL`: a shell's script that completes leat's
 * command line, made of the tables by which the commands parse it.
 *
 * Each part of a script is one pass over all commands, which describe
 * themselves to a visitor. A command is named by its words: "import mnist".
 */
#include "tools/command.h"
#include "tools/message.h"
#include "tools/option.h"

#include <stdio.h>
#include <string.h>

/* What a shell offers as the value of an option. */
enum value { NO_VALUE, ANY_VALUE, FILE_VALUE, DIRECTORY_VALUE, WORD_VALUE };

static enum value value_of(const struct option_spec *option)
{
    const char *value = option->value;
    if (!value)
        return NO_VALUE;
    if (strchr(value, '|'))
        return WORD_VALUE;
    if (!strcmp(value, "DIR"))
        return DIRECTORY_VALUE;
    /* Pipelines may be paths. */
    if (!strcmp(value, "FILE") || !strcmp(value, "PATH") ||
        !strcmp(value, "TEXT"))
        return FILE_VALUE;
    return ANY_VALUE;
}

static void visit_commands(const struct usage_visitor *visitor)
{
    option_visit(visitor);
    for (const struct kind *one = command_list(); one->name; one++)
        one->run(0, NULL);
    option_visit(NULL);
}

static void ignore_kinds(const struct kinds *kinds, void *context)
{
    (void)kinds;
    (void)context;
}

static void ignore_usage(const struct usage *usage, void *context)
{
    (void)usage;
    (void)context;
}

static void visit_usages(void (*visit)(const struct usage *, void *))
{
    const struct usage_visitor visitor = {ignore_kinds, visit, NULL};
    visit_commands(&visitor);
}

static void visit_kinds(void (*visit)(const struct kinds *, void *))
{
    const struct usage_visitor visitor = {visit, ignore_usage, NULL};
    visit_commands(&visitor);
}

/* Writes the words of "A|B" with blanks between them. */
static void print_words(const char *value)
{
    for (; *value; value++)
        putchar(*value == '|' ? ' ' : *value);
}

/* Writes a text with a backslash before each of the letters. */
static void print_escaped(const char *text, const char *letters)
{
    for (; *text; text++) {
        if (strchr(letters, *text))
            putchar('\\');
        putchar(*text);
    }
}

static void print_names(const struct kind *list)
{
    for (const struct kind *one = list; one->name; one++)
        printf("%s%s", one == list ? "" : " ", one->name);
}

static void print_bash_kinds(const struct kinds *kinds, void *context)
{
    (void)context;
    printf("    'leat %s' | 'leat help %s') words='", kinds->command,
           kinds->command);
    print_names(kinds->kind);
    printf("' ;;\n");
}

static void print_bash_options(const struct usage *usage, void *context)
{
    (void)context;
    const struct option_spec *o;
    printf("    'leat %s') words='", usage->command);
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        printf("--%s ", o->name);
    printf("--help' ;;\n");
}

static void print_bash_values(const struct usage *usage, void *context)
{
    (void)context;
    const struct option_spec *o;
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++) {
        enum value value = value_of(o);
        if (value == NO_VALUE)
            continue;
        printf("    'leat %s --%s') value=", usage->command, o->name);
        if (value == WORD_VALUE) {
            printf("'");
            print_words(o->value);
            printf("' ;;\n");
        } else {
            printf("%s ;;\n", value == FILE_VALUE        ? ":file"
                              : value == DIRECTORY_VALUE ? ":directory"
                                                         : ":any");
        }
    }
}

/* The part of bash's script that is the same whatever there is to complete. */
static const char bash_function[] =
    "    *) value= ;;\n    esac\n}\n\n"
    "_leat_files()\n{\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n}\n\n"
    "_leat()\n{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]}\n"
    "    local previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=leat at=1 words value\n"
    "    # --name=value is three words.\n"
    "    if [[ $current == = ]]; then\n"
    "        current=\n"
    "    elif [[ $previous == = ]]; then\n"
    "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    for (( ; at < COMP_CWORD; at++ )); do\n"
    "        _leat_kinds \"$command\"\n"
    "        [[ \" $words \" == *\" ${COMP_WORDS[at]} \"* ]] || break\n"
    "        command+=\" ${COMP_WORDS[at]}\"\n"
    "    done\n"
    "    _leat_value \"$command\" \"$previous\"\n"
    "    COMPREPLY=()\n"
    "    case $value in\n"
    "    :any) return ;;\n"
    "    :file) _leat_files -f \"$current\"; return ;;\n"
    "    :directory) _leat_files -d \"$current\"; return ;;\n"
    "    '') ;;\n"
    "    *)\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$value\" -- "
    "\"$current\")\n"
    "        return\n"
    "        ;;\n"
    "    esac\n"
    "    _leat_kinds \"$command\"\n"
    "    if [[ $current == -* ]]; then\n"
    "        _leat_options \"$command\"\n"
    "    elif [[ -z $words || $at -lt $COMP_CWORD ]]; then\n"
    "        _leat_files -f \"$current\"\n"
    "        return\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
    "}\n"
    "complete -F _leat leat\n";

static void print_bash(void)
{
    printf("# bash completion of leat; `leat completion bash` prints it.\n\n"
           "# Sets `words` to the commands or kinds that may follow.\n"
           "_leat_kinds()\n{\n    case $1 in\n    leat) words='");
    print_names(command_list());
    printf(" help' ;;\n    'leat help') words='");
    print_names(command_list());
    printf("' ;;\n");
    visit_kinds(print_bash_kinds);
    printf("    *) words= ;;\n    esac\n}\n\n"
           "# Sets `words` to the options of a command.\n"
           "_leat_options()\n{\n    case $1 in\n"
           "    leat) words='--help --version' ;;\n");
    visit_usages(print_bash_options);
    printf("    *) words=--help ;;\n    esac\n}\n\n"
           "# Sets `value` to what a command's option takes.\n"
           "_leat_value()\n{\n    case \"$1 $2\" in\n");
    visit_usages(print_bash_values);
    fputs(bash_function, stdout);
}

/* Writes a text within single quotes, as zsh has them. */
static void print_zsh_text(const char *text, const char *letters)
{
    for (; *text; text++) {
        char letter[] = {*text, 0};
        if (*text == '\'')
            printf("'\\''");
        else
            print_escaped(letter, letters);
    }
}

static void print_zsh_list(const char *name, const struct kind *list)
{
    printf("  local -a %s=(\n", name);
    for (; list->name; list++) {
        printf("    '%s:", list->name);
        print_zsh_text(list->summary, "");
        printf("'\n");
    }
    printf("  )\n");
}

static void print_zsh_kinds(const struct kinds *kinds, void *context)
{
    (void)context;
    printf("_leat_%s() {\n", kinds->command);
    print_zsh_list("kinds", kinds->kind);
    printf("  _leat_choose %s kinds\n}\n\n", kinds->command);
}

static void print_zsh_option(const struct option_spec *option)
{
    enum value value = value_of(option);
    printf("    '--%s%s[", option->name, value == NO_VALUE ? "" : "=");
    print_zsh_text(option->help, "[]:\\");
    printf("]");
    if (value != NO_VALUE)
        printf(":value:");
    if (value == WORD_VALUE) {
        printf("(");
        print_words(option->value);
        printf(")");
    } else if (value != NO_VALUE && value != ANY_VALUE) {
        printf("_files%s", value == DIRECTORY_VALUE ? " -/" : "");
    }
    printf("' \\\n");
}

static void print_zsh_usage(const struct usage *usage, void *context)
{
    (void)context;
    const struct option_spec *o;
    printf("_leat_");
    for (const char *c = usage->command; *c; c++)
        putchar(*c == ' ' ? '_' : *c);
    printf("() {\n  _arguments -s \\\n");
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        print_zsh_option(o);
    printf("    '(- *)'{-h,--help}'[print help and exit]' \\\n"
           "    '*:file:_files'\n}\n\n");
}

static void print_zsh(void)
{
    printf("#compdef leat\n"
           "# zsh completion of leat; `leat completion zsh` prints it.\n\n"
           "# Completes the word that chooses, or what follows it.\n"
           "_leat_choose() {\n"
           "  local prefix=$1 list=$2\n"
           "  if (( CURRENT == 2 )); then\n"
           "    _describe -t commands command $list\n"
           "    return\n"
           "  fi\n"
           "  local routine=_leat_${prefix:+${prefix}_}$words[2]\n"
           "  shift words\n"
           "  (( CURRENT-- ))\n"
           "  (( $+functions[$routine] )) && $routine\n"
           "}\n\n");
    visit_usages(print_zsh_usage);
    visit_kinds(print_zsh_kinds);
    printf("_leat_help() {\n");
    print_zsh_list("commands", command_list());
    printf("  (( CURRENT == 2 )) && _describe -t commands command commands\n"
           "}\n\n_leat() {\n");
    print_zsh_list("commands", command_list());
    printf("  commands+=('help:print the help of a command')\n"
           "  if [[ $words[CURRENT] == -* && CURRENT -eq 2 ]]; then\n"
           "    _arguments '(- *)'{-h,--help}'[print help and exit]' \\\n"
           "      '(- *)'{-V,--version}'[print the version and exit]'\n"
           "    return\n"
           "  fi\n"
           "  _leat_choose '' commands\n}\n\n_leat \"$@\"\n");
}

static void print_fish_text(const char *text)
{
    putchar('\'');
    print_escaped(text, "\\'");
    putchar('\'');
}

static void print_fish_list(const char *before, const struct kind *list)
{
    for (; list->name; list++) {
        printf("complete -c leat -f -n '__leat_wants %s' -a %s -d ", before,
               list->name);
        print_fish_text(list->summary);
        printf("\n");
    }
}

static void print_fish_kinds(const struct kinds *kinds, void *context)
{
    char help[64];
    (void)context;
    snprintf(help, sizeof(help), "help %s", kinds->command);
    print_fish_list(kinds->command, kinds->kind);
    print_fish_list(help, kinds->kind);
}

static void print_fish_value(const struct option_spec *option)
{
    switch (value_of(option)) {
    case NO_VALUE:
        break;
    case ANY_VALUE:
        printf(" -x");
        break;
    case FILE_VALUE:
        printf(" -r -F");
        break;
    case DIRECTORY_VALUE:
        printf(" -x -a '(__fish_complete_directories)'");
        break;
    case WORD_VALUE:
        printf(" -x -a '");
        print_words(option->value);
        printf("'");
        break;
    }
}

static void print_fish_usage(const struct usage *usage, void *context)
{
    (void)context;
    const struct option_spec *o;
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++) {
        printf("complete -c leat -n '__leat_is %s' -l %s", usage->command,
               o->name);
        print_fish_value(o);
        printf(" -d ");
        print_fish_text(o->help);
        printf("\n");
    }
}

static void print_fish(void)
{
    printf("# fish completion of leat; `leat completion fish` prints it.\n\n"
           "# Whether the command line begins with these words behind leat.\n"
           "function __leat_is\n"
           "    set -l typed (commandline -opc)\n"
           "    set -l n (count $argv)\n"
           "    test (count $typed) -gt $n; or return 1\n"
           "    set -l last (math $n + 1)\n"
           "    test $n -eq 0; or test \"$typed[2..$last]\" = \"$argv\"\n"
           "end\n\n"
           "# Whether it holds no others before the cursor.\n"
           "function __leat_wants\n"
           "    test (count (commandline -opc)) -eq (math (count $argv) + 1)\n"
           "    and __leat_is $argv\n"
           "end\n\n");
    print_fish_list("", command_list());
    printf("complete -c leat -f -n __leat_wants -a help -d "
           "'print the help of a command'\n");
    print_fish_list("help", command_list());
    visit_kinds(print_fish_kinds);
    visit_usages(print_fish_usage);
    printf("complete -c leat -s h -l help -d 'print help and exit'\n"
           "complete -c leat -n __leat_wants -s V -l version -d "
           "'print the version and exit'\n");
}

int command_completion(int argc, char **argv)
{
    const struct usage usage = {
        .command = "completion",
        .arguments = "bash|zsh|fish",
        .about = "Prints the script by which a shell completes leat's command\n"
                 "line. An installed leat has it in its place already.",
        .least_arguments = 1,
        .most_arguments = 1,
    };
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {
        {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    char **arguments;
    int n;
    int status = option_parse(&usage, argc, argv, &arguments, &n);
    if (status != OPTION_GO)
        return status;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (!strcmp(arguments[0], shells[i].name)) {
            shells[i].print();
            return 0;
        }
    return message_misuse("completion",
                          "completion: expected bash, zsh or fish, found '%s'",
                          arguments[0]);
}
