#include "readers/file_list.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "pipeline/opening.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a list: ten million paths of a hundred bytes. */
#define LIST_MAX ((size_t)1 << 30)

/* Of a path, beside its bytes: its pointer, and what malloc takes. */
enum { MALLOC_BYTES = 24, PATH_BYTES = sizeof(char *) + MALLOC_BYTES };

static int exceeds(const leat__file_list *list)
{
    return leat_error(LEAT_ELIMIT,
                      "the paths of the files take %lld bytes or more, but "
                      "max_memory is %lld: expected a larger one",
                      (long long)list->bytes, (long long)list->most);
}

static int count_bytes(leat__file_list *list, size_t more)
{
    list->bytes += (int64_t)more;
    return list->most > 0 && list->bytes > list->most ? exceeds(list) : LEAT_OK;
}

static int make_room(leat__file_list *list)
{
    if (list->n < list->capacity)
        return LEAT_OK;
    if (list->capacity > INT_MAX / 2)
        return leat_error(LEAT_ELIMIT, "more than %d files", list->n);
    int capacity = list->capacity ? list->capacity * 2 : 16;
    char **path =
        leat__realloc(list->path, (size_t)capacity * sizeof(*list->path));
    if (!path)
        return LEAT_ENOMEM;
    list->path = path;
    list->capacity = capacity;
    return LEAT_OK;
}

/* A path, after the text `folder`. */
static int add_path(leat__file_list *list, const char *folder, const char *path,
                    size_t size)
{
    size_t before = strlen(folder);
    int status = count_bytes(list, before + size + PATH_BYTES);
    if (!status)
        status = make_room(list);
    if (status)
        return status;
    char *copy = leat__alloc(before + size + 1);
    if (!copy)
        return LEAT_ENOMEM;
    memcpy(copy, folder, before);
    memcpy(copy + before, path, size);
    copy[before + size] = 0;
    list->path[list->n++] = copy;
    return LEAT_OK;
}

/* A line of a list; one that would be a list as the text of a reader has ./
 * before it. */
static int add_line(leat__file_list *list, const char *line, size_t size)
{
    return add_path(list, line[0] == '@' ? "./" : "", line, size);
}

int leat__file_list_parse(leat__file_list *list, const char *name,
                          const char *bytes, size_t size)
{
    const char *end = bytes + size;
    int before = list->n, status = LEAT_OK;
    if (memchr(bytes, 0, size))
        return leat_error(LEAT_EFORMAT,
                          "%s: expected a list of paths, a line each, found "
                          "bytes of 0",
                          name);
    while (!status && bytes < end) {
        const char *line = bytes;
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        bytes = newline ? newline + 1 : end;
        if (stop > line && stop[-1] == '\r')
            stop--;
        status = leat__opening_check(name);
        if (!status && stop > line)
            status = add_line(list, line, (size_t)(stop - line));
    }
    if (!status && list->n == before)
        return leat_error(LEAT_EFORMAT, "%s: the list names no files", name);
    return status;
}

/* Memory for a structure that ends in a text, within the list's limit. */
static int alloc_named(leat__file_list *list, void **out, size_t size,
                       const char *text)
{
    size_t length = strlen(text) + 1;
    int status = count_bytes(list, size + length + MALLOC_BYTES);
    if (status)
        return status;
    char *bytes = leat__alloc(size + length);
    if (!bytes)
        return LEAT_ENOMEM;
    memset(bytes, 0, size);
    memcpy(bytes + size, text, length);
    *out = bytes;
    return LEAT_OK;
}

static int add_list(leat__file_list *list, const char *path)
{
    char *bytes;
    size_t size, limit = LIST_MAX;
    leat__listed_file *noted;
    int status = leat__listed_file_note(&noted, path);
    if (status)
        return status;
    if (noted) {
        noted->next = list->file;
        list->file = noted;
    }
    if (list->most > 0 && (uint64_t)(list->most - list->bytes) < limit)
        limit = (size_t)(list->most - list->bytes);
    status = leat__file_read(&bytes, &size, path, limit);
    if (status == LEAT_EFORMAT && limit < LIST_MAX) {
        list->bytes += (int64_t)limit + 1;
        return exceeds(list);
    }
    if (status)
        return status;
    if (noted)
        leat__listed_file_read(noted, bytes, size);
    list->bytes += (int64_t)size;
    status = leat__file_list_parse(list, path, bytes, size);
    list->bytes -= (int64_t)size;
    leat__free(bytes);
    return status;
}

/* A folder that is looked in; `rest` of the pattern follows its part. */
typedef struct search_level {
    struct search_level *outer;
    DIR *folder;
    size_t used; /* of the path, before the folder's names */
    const char *rest;
    char part[];
} search_level;

/* How a pattern's matches are found: each folder's in turn. The levels are not
 * on the stack, which may be small. */
typedef struct pattern_search {
    leat__file_list *list;
    leat__listed_pattern *pattern;
    search_level *level; /* the innermost */
    locale_t locale;     /* C, in which names are bytes */
    char path[PATH_MAX]; /* what of the pattern is matched */
} pattern_search;

static int refuse_folder(const pattern_search *search)
{
    return leat__error_system(errno, "%s: a folder of the pattern",
                              search->pattern->text);
}

static int append(pattern_search *search, size_t *used, const char *text,
                  size_t size)
{
    if (size >= sizeof(search->path) - *used) {
        errno = ENAMETOOLONG;
        return refuse_folder(search);
    }
    memcpy(search->path + *used, text, size);
    *used += size;
    search->path[*used] = 0;
    return LEAT_OK;
}

static int add_match(const pattern_search *search)
{
    return add_path(search->list, "", search->path, strlen(search->path));
}

static int add_existing(const pattern_search *search)
{
    struct stat about;
    if (lstat(search->path, &about) == 0)
        return add_match(search);
    if (errno == ENOENT || errno == ENOTDIR)
        return LEAT_OK;
    return leat__error_system(errno, "%s: a file of the pattern",
                              search->pattern->text);
}

static int add_folder(pattern_search *search, const char *path, DIR *opened)
{
    struct stat about;
    void *bytes;
    if (fstat(dirfd(opened), &about))
        return leat__error_system(errno, "%s", path);
    int status = alloc_named(search->list, &bytes,
                             offsetof(leat__listed_folder, path), path);
    if (status)
        return status;
    leat__listed_folder *folder = bytes;
    folder->next = search->pattern->folder;
    folder->device = about.st_dev;
    folder->inode = about.st_ino;
    search->pattern->folder = folder;
    return LEAT_OK;
}

/* Opens the folder that the path ends in; *out NULL: there is none, which is an
 * error for the first. */
static int open_folder(pattern_search *search, size_t used, DIR **out)
{
    while (used > 1 && search->path[used - 1] == '/')
        used--;
    char after = search->path[used];
    search->path[used] = 0;
    const char *path = used > 0 ? search->path : ".";
    int status = LEAT_OK;
    *out = opendir(path);
    if (*out)
        status = add_folder(search, path, *out);
    else if (errno != ENOTDIR && (errno != ENOENT || !search->pattern->folder))
        status = refuse_folder(search);
    search->path[used] = after;
    if (status && *out)
        (void)closedir(*out);
    return status;
}

/* Names of the folder that the path ends in are matched next, if there is one.
 */
static int enter(pattern_search *search, size_t used, const char *part,
                 size_t size)
{
    DIR *folder;
    int status = open_folder(search, used, &folder);
    if (status || !folder)
        return status;
    search_level *level = leat__alloc(sizeof(*level) + size + 1);
    if (!level) {
        (void)closedir(folder);
        return LEAT_ENOMEM;
    }
    *level = (search_level){search->level, folder, used, part + size};
    memcpy(level->part, part, size);
    level->part[size] = 0;
    search->level = level;
    return LEAT_OK;
}

static void leave(pattern_search *search)
{
    search_level *level = search->level;
    search->level = level->outer;
    (void)closedir(level->folder);
    leat__free(level);
}

/* Goes on as `rest` of the pattern says, up to a part with a wildcard. */
static int expand(pattern_search *search, size_t used, const char *rest)
{
    int status = LEAT_OK;
    while (!status && *rest) {
        size_t slashes = strspn(rest, "/");
        size_t size = strcspn(rest + slashes, "/");
        status = append(search, &used, rest, slashes);
        rest += slashes;
        if (!status && strcspn(rest, "*?[/") < size)
            return enter(search, used, rest, size);
        if (!status)
            status = append(search, &used, rest, size);
        rest += size;
    }
    return status ? status : add_existing(search);
}

/* As fnmatch, whatever the program's locale has for letters and ranges. */
static int match(const pattern_search *search, const char *part,
                 const char *name)
{
    locale_t before = uselocale(search->locale);
    int code = fnmatch(part, name, FNM_PERIOD | FNM_NOESCAPE);
    uselocale(before);
    return code;
}

/* A file of the innermost folder. */
static int try_name(pattern_search *search, const char *name)
{
    const search_level *level = search->level;
    size_t used = level->used;
    int code = match(search, level->part, name);
    if (code == FNM_NOMATCH)
        return LEAT_OK;
    if (code)
        return leat_error(LEAT_ENOMEM, "%s: out of memory",
                          search->pattern->text);
    int status = append(search, &used, name, strlen(name));
    if (status)
        return status;
    return *level->rest ? expand(search, used, level->rest) : add_match(search);
}

/* Matches the next file of the innermost folder, or leaves that. */
static int look_on(pattern_search *search)
{
    int status = leat__opening_check(search->pattern->text);
    if (status)
        return status;
    errno = 0;
    const struct dirent *entry = readdir(search->level->folder);
    if (entry)
        return try_name(search, entry->d_name);
    if (errno)
        return refuse_folder(search);
    leave(search);
    return LEAT_OK;
}

static int find_matches(pattern_search *search)
{
    search->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!search->locale)
        return leat_error(LEAT_ENOMEM, "%s: no memory for a locale",
                          search->pattern->text);
    int status = expand(search, 0, search->pattern->text);
    while (!status && search->level)
        status = look_on(search);
    while (search->level)
        leave(search);
    freelocale(search->locale);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A match is a file, not standard input or a list as the text of a reader is.
 */
static int mark_file(leat__file_list *list, char **path)
{
    if (strcmp(*path, "-") != 0 && (*path)[0] != '@')
        return LEAT_OK;
    size_t size = strlen(*path) + 1;
    int status = count_bytes(list, 2);
    char *marked = status ? NULL : leat__realloc(*path, size + 2);
    if (!marked)
        return status ? status : LEAT_ENOMEM;
    memmove(marked + 2, marked, size);
    memcpy(marked, "./", 2);
    *path = marked;
    return LEAT_OK;
}

/* The order is that of what was matched, before anything is marked. */
static int sort_matches(leat__file_list *list, int first)
{
    int status = LEAT_OK;
    qsort(list->path + first, (size_t)(list->n - first), sizeof(char *),
          compare);
    for (int i = first; !status && i < list->n; i++)
        status = mark_file(list, &list->path[i]);
    return status;
}

static int add_pattern(leat__file_list *list, const char *text)
{
    void *bytes;
    pattern_search search;
    int status =
        alloc_named(list, &bytes, offsetof(leat__listed_pattern, text), text);
    if (status)
        return status;
    leat__listed_pattern *pattern = bytes;
    pattern->next = list->pattern;
    pattern->first = list->n;
    list->pattern = pattern;
    search.list = list;
    search.pattern = pattern;
    search.level = NULL;
    search.path[0] = 0;
    status = find_matches(&search);
    pattern->n = list->n - pattern->first;
    if (!status && pattern->n == 0)
        return leat_error(LEAT_EIO, "%s: no file matches", text);
    return status || !list->path ? status : sort_matches(list, pattern->first);
}

/* A file whose name looks like a pattern is itself. */
static int is_pattern(const char *text)
{
    struct stat about;
    return strpbrk(text, "*?[") && lstat(text, &about) != 0;
}

int leat__file_list_add(leat__file_list *list, const char *text)
{
    if (text[0] == '@')
        return add_list(list, text + 1);
    if (!is_pattern(text))
        return add_path(list, "", text, strlen(text));
    if (strstr(text, "**"))
        return leat_error(LEAT_EINVAL,
                          "%s: ** does not reach into folders here: write "
                          "their paths to a file, and give it as @FILE",
                          text);
    return add_pattern(list, text);
}

static bool is_in_place(const leat__listed_folder *folder)
{
    struct stat about;
    return stat(folder->path, &about) == 0 && about.st_dev == folder->device &&
           about.st_ino == folder->inode;
}

/* Some file systems number a folder anew, and one may have come or gone that
 * has no file of the pattern. */
static int check_pattern(const leat__file_list *list,
                         const leat__listed_pattern *pattern,
                         const leat__listed_folder *folder)
{
    leat__file_list now = {.most = list->most};
    int status = add_pattern(&now, pattern->text);
    bool is_same = !status && now.n == pattern->n;
    for (int i = 0; is_same && i < now.n; i++)
        is_same = strcmp(now.path[i], list->path[pattern->first + i]) == 0;
    leat__file_list_close(&now);
    if (is_same || status == LEAT_ENOMEM || status == LEAT_ECANCELLED)
        return status;
    return leat_error(LEAT_EIO,
                      "%s: removed or replaced while its files were opened; "
                      "open them again",
                      folder->path);
}

int leat__file_list_check_folders(const leat__file_list *list, int64_t most)
{
    int status = LEAT_OK;
    for (const leat__listed_pattern *at = list->pattern; !status && at;
         at = at->next) {
        const leat__listed_folder *folder = at->folder;
        for (; !status && folder && most > 0 && is_in_place(folder); most--) {
            status = leat__opening_check(at->text);
            folder = folder->next;
        }
        if (!status && folder && most > 0)
            status = check_pattern(list, at, folder);
    }
    return status;
}

int leat__file_list_check(const leat__file_list *list)
{
    int status = LEAT_OK;
    for (const leat__listed_file *file = list->file; !status && file;
         file = file->next)
        status = leat__listed_file_check(file);
    return status ? status : leat__file_list_check_folders(list, INT64_MAX);
}

int leat__file_list_modified(uint64_t *hash, const leat__file_list *list)
{
    struct stat about;
    int status = LEAT_OK;
    for (int i = 0; !status && i < list->n; i++) {
        status = leat__opening_check(list->path[i]);
        if (!status && stat(list->path[i], &about) == 0 &&
            S_ISREG(about.st_mode))
            *hash =
                leat__file_hash_modified(*hash, leat__file_modified(&about));
    }
    return status;
}

int leat__file_list_open(leat__file_list *list, const leat_open *open)
{
    const char *text;
    int status = LEAT_OK;
    *list = (leat__file_list){.most = open->max_memory};
    for (int i = 0; !status && (text = leat_args_at(open->args, i)) != NULL;
         i++)
        status = leat__file_list_add(list, text);
    if (status)
        leat__file_list_close(list);
    return status;
}

static void close_pattern(leat__listed_pattern *pattern)
{
    while (pattern->folder) {
        leat__listed_folder *folder = pattern->folder;
        pattern->folder = folder->next;
        leat__free(folder);
    }
    leat__free(pattern);
}

void leat__file_list_close(leat__file_list *list)
{
    for (int i = 0; i < list->n; i++)
        leat__free(list->path[i]);
    leat__free(list->path);
    while (list->pattern) {
        leat__listed_pattern *pattern = list->pattern;
        list->pattern = pattern->next;
        close_pattern(pattern);
    }
    while (list->file) {
        leat__listed_file *file = list->file;
        list->file = file->next;
        leat__free(file);
    }
    *list = (leat__file_list){0};
}
