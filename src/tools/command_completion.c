/*
 * command_completion.c: `leat completion SHELL`: the script by which a shell
 * completes leat's command line.
 *
 * The scripts know no command. They run `leat completion words WORD...` with
 * the words typed so far, the last word being the one to complete, and get a
 * line for each candidate, WORD or WORD<TAB>DESCRIPTION, or :file or :directory
 * where the shell completes paths. So the commands' own tables answer.
 */
#include "tools/command.h"

/* The words typed after `leat`, and their meaning. */
struct line {
    int n;
    char **words;
    int at;                        /* the first word that names no command */
    const struct command *command; /* that the words before name */
    const char *typed;             /* of the word to complete */
    const char *option;            /* the option whose value it is, or NULL */
};

/* option_visit has no context. */
static const struct line *current;

static void print_candidate(const char *prefix, const char *word,
                            const char *description)
{
    size_t size = strlen(prefix), typed = strlen(current->typed);
    if (strncmp(prefix, current->typed, size < typed ? size : typed) != 0 ||
        (typed > size &&
         strncmp(word, current->typed + size, typed - size) != 0))
        return;
    printf("%s%s%s%s\n", prefix, word, description ? "\t" : "",
           description ? description : "");
}

static bool is_path(const char *value)
{
    static const char *const paths[] = {"FILE", "PATH", "TEXT"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (!strcmp(value, paths[i]))
            return true;
    return false;
}

/* The words of "A|B", a path, or nothing. */
static void print_value(const char *value)
{
    if (!strchr(value, '|')) {
        if (is_path(value) || !strcmp(value, "DIR"))
            printf("%s\n", is_path(value) ? ":file" : ":directory");
        return;
    }
    for (size_t size; *value; value += size + (value[size] == '|')) {
        char word[64];
        size = strcspn(value, "|");
        snprintf(word, sizeof(word), "%.*s", (int)size, value);
        print_candidate("", word, NULL);
    }
}

static void print_usage(const struct usage *usage)
{
    const struct option_spec *o;
    size_t size = current->option ? strcspn(current->option, "=") : 0;
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        if (o->value && strlen(o->name) == size &&
            !strncmp(o->name, current->option, size)) {
            print_value(o->value);
            return;
        }
    if (*current->typed != '-') {
        puts(":file");
        return;
    }
    for (int i = 0; (o = option_at(usage, i)) != NULL; i++)
        print_candidate("--", o->name, o->help);
    print_candidate("--", "help", "print help and exit");
}

static void print_commands(bool is_help)
{
    for (const struct command *one = current->command->commands; one->name;
         one++)
        print_candidate("", one->name, one->summary);
    if (current->command != command_root())
        return;
    if (!is_help)
        print_candidate("", "help", "print the help of a command");
    if (*current->typed == '-')
        print_candidate("--", "version", "print the version and exit");
}

/* --NAME=VALUE is one word or, in bash, three. */
static void find_option(struct line *line)
{
    char *const *last = line->words + line->n - 1;
    const char *name = line->n > 1 ? last[-1] : "";
    if (!strcmp(line->typed, "=")) {
        line->typed = "";
    } else if (line->n > 2 && !strcmp(name, "=")) {
        name = last[-2];
    } else if (!strncmp(line->typed, "--", 2) && strchr(line->typed, '=')) {
        name = line->typed;
        line->typed = strchr(name, '=') + 1;
    }
    if (!strncmp(name, "--", 2))
        line->option = name + 2;
}

static void print_words(int n, char **words)
{
    struct line found = {.n = n, .words = words, .command = command_root()};
    bool is_help = n > 1 && !strcmp(words[0], "help");
    found.at = is_help;
    while (found.at < n - 1 && found.command->commands) {
        const struct command *next =
            command_find(found.command->commands, words[found.at]);
        if (!next)
            break;
        found.command = next;
        found.at++;
    }
    found.typed = words[n - 1];
    find_option(&found);
    current = &found;
    if (!found.command->commands) {
        option_visit(print_usage);
        found.command->run(0, NULL);
    } else if (found.at == n - 1) {
        print_commands(is_help);
        if (*found.typed == '-')
            print_candidate("--", "help", "print help and exit");
    } else {
        puts(":file");
    }
    current = NULL;
}

static const char bash[] =
    "# bash completion of leat; `leat completion bash` prints it.\n"
    "_leat()\n{\n"
    "    local line current=${COMP_WORDS[COMP_CWORD]}\n"
    "    [[ $current == = ]] && current=\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :file | :directory)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t COMPREPLY < <(compgen -A \"${line#:}\" -- "
    "\"$current\")\n"
    "            ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words "
    "\"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _leat leat\n";

static const char zsh[] =
    "#compdef leat\n"
    "# zsh completion of leat; `leat completion zsh` prints it.\n"
    "_leat() {\n"
    "  local -a lines\n"
    "  lines=(\"${(@f)$(\"$words[1]\" completion words "
    "\"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "  compset -P '--*='\n"
    "  case $lines[1] in\n"
    "  '') return 1 ;;\n"
    "  :file) _files ;;\n"
    "  :directory) _files -/ ;;\n"
    "  *)\n"
    "    lines=(\"${(@)lines//:/\\\\:}\")\n"
    "    lines=(\"${(@)lines/$'\\t'/:}\")\n"
    "    _describe -t leat leat lines\n"
    "    ;;\n"
    "  esac\n"
    "}\n"
    "# The file is the function itself where zsh loads it.\n"
    "if [[ $funcstack[1] == _leat ]]; then\n"
    "  _leat \"$@\"\n"
    "else\n"
    "  compdef _leat leat\n"
    "fi\n";

static const char fish[] =
    "# fish completion of leat; `leat completion fish` prints it.\n"
    "function __leat_words\n"
    "    set -l typed (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l prefix (string match -r -- '^--[^=]*=' $current)\n"
    "    set -l value (string replace -r -- '^--[^=]*=' '' $current)\n"
    "    for line in ($typed[1] completion words $typed[2..-1] \"$current\" "
    "2>/dev/null)\n"
    "        switch $line\n"
    "            case :file\n"
    "                printf '%s\\n' \"$prefix\"(__fish_complete_path $value)\n"
    "            case :directory\n"
    "                printf '%s\\n' \"$prefix\""
    "(__fish_complete_directories $value)\n"
    "            case '*'\n"
    "                printf '%s%s\\n' \"$prefix\" $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c leat -f -a '(__leat_words)'\n";

int command_completion(int argc, char **argv)
{
    const struct usage usage = {
        .command = "completion",
        .arguments = "bash|zsh|fish",
        .about =
            "Prints the script with which a shell completes leat's command\n"
            "line. Packages install it where the shell finds it.",
        .least_arguments = 1,
        .most_arguments = 1,
    };
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    if (argc > 2 && !strcmp(argv[1], "words")) {
        print_words(argc - 2, argv + 2);
        return 0;
    }
    char **arguments = option_parse(&usage, argc, argv);
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (!strcmp(arguments[0], shells[i].name)) {
            fputs(shells[i].script, stdout);
            return 0;
        }
    message_misuse("completion",
                   "completion: expected bash, zsh or fish, found '%s'",
                   arguments[0]);
}
