#include "readers/record/record_files.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "pipeline/opening.h"

#include <errno.h>
#include <sys/stat.h>

/* With more files than this their descriptors are closed once they are mapped.
 */
#define DESCRIPTORS_MAX 128

/* What a walk sees of a file at first, and then more; of one that is awaited,
 * little, so that the first record is returned soon. */
#define SEEN_BYTES ((uint64_t)32 << 20)
#define SEEN_BYTES_AWAITED ((uint64_t)1 << 20)

/* Pages sampled over all files, and how many of them may be absent while they
 * count as resident. */
enum { SAMPLES = 64, SAMPLES_ABSENT = 4 };

/* Of the bytes, a fingerprint has these many at both ends of these many files.
 */
enum { ENDS_BYTES = 64, ENDS_FILES = 64 };

static int begin_file(leat__record_source *source, leat__record_format *format)
{
    const leat__record_window window = leat__record_source_window(source);
    if (source->map.size >> LEAT__RECORD_OFFSET_BITS)
        return leat_error(LEAT_ELIMIT, "%s: expected less than 256 TiB",
                          source->map.name);
    if (!format->ops->begin)
        return LEAT_OK;
    int status =
        format->ops->begin(format, &window, window.size, &source->file);
    return status ? leat__error_context(status, "%s", source->map.name)
                  : LEAT_OK;
}

static int open_file(leat__record_source *source, const char *path,
                     bool keeps_fd, leat__record_format *format)
{
    struct stat about;
    int status = leat__mapped_file_open(
        &source->map, path, keeps_fd ? LEAT__MAP_KEEPS_FD : 0, &about);
    if (status)
        return status;
    source->version = leat__file_version_of(&about);
    source->device = about.st_dev;
    source->inode = about.st_ino;
    source->owner = about.st_uid;
    atomic_init(&source->entered, -1);
    status = begin_file(source, format);
    if (status)
        leat__mapped_file_close(&source->map);
    return status;
}

static bool has_name(const leat__record_source *source, struct stat *found)
{
    return stat(source->map.name, found) == 0 &&
           found->st_dev == source->device && found->st_ino == source->inode;
}

/* Some may have been replaced before they were opened, and others after it. */
static int check_names(const leat__record_files *files)
{
    struct stat found;
    int status = LEAT_OK;
    for (int i = 0; !status && i < files->n && files->n > 1; i++) {
        const char *name = files->source[i].map.name;
        status = leat__opening_check(name);
        if (!status && !has_name(&files->source[i], &found))
            status = leat_error(LEAT_EIO,
                                "%s: removed or replaced while it was opened "
                                "with others; open them again",
                                name);
    }
    return status;
}

int leat__record_files_open(leat__record_files *out,
                            const leat__file_list *list,
                            leat__record_format *format,
                            const atomic_bool *cancelled)
{
    const int n = list->n;
    leat__record_files files = {0};
    if (n > LEAT__RECORD_FILES_MAX)
        return leat_error(LEAT_ELIMIT,
                          "a reader maps at most %d files, got %d: read them "
                          "by files and interleave, which open some at a time",
                          LEAT__RECORD_FILES_MAX, n);
    files.revision = format->revision;
    files.source = leat__alloc_zero((size_t)n, sizeof(*files.source));
    if (!files.source)
        return LEAT_ENOMEM;
    for (; files.n < n; files.n++) {
        leat__record_source *source = &files.source[files.n];
        source->file.number = files.n;
        source->cancelled = cancelled;
        int status = leat__opening_check(list->path[files.n]);
        if (!status)
            status = open_file(source, list->path[files.n],
                               n <= DESCRIPTORS_MAX, format);
        if (status) {
            leat__record_files_close(&files);
            return status;
        }
        source->begin = files.bytes;
        files.bytes += source->map.size;
        files.revision =
            leat__file_hash_modified(files.revision, source->version.modified);
    }
    int status = leat__file_list_check(list);
    if (!status)
        status = check_names(&files);
    if (status)
        leat__record_files_close(&files);
    else
        *out = files;
    return status;
}

void leat__record_files_close(leat__record_files *files)
{
    for (int i = 0; i < files->n; i++)
        leat__mapped_file_close(&files->source[i].map);
    leat__free(files->source);
}

bool leat__record_source_has_name(const leat__record_source *source)
{
    struct stat found;
    return has_name(source, &found);
}

int leat__record_source_check(const leat__record_source *source)
{
    const leat__mapped_file *map = &source->map;
    struct stat found;
    /* A file that was removed or replaced is still there for those that have
       it open, and as it was. */
    if (map->fd < 0 && !has_name(source, &found))
        return LEAT_OK;
    if (map->fd >= 0 && fstat(map->fd, &found))
        return leat__error_system(errno, "%s", map->name);
    return leat__file_version_check(source->version,
                                    leat__file_version_of(&found), map->name);
}

int leat__record_files_check_versions(const leat__record_files *files)
{
    int status = LEAT_OK;
    for (int i = 0; i < files->n && !status; i++)
        status = leat__record_source_check(&files->source[i]);
    return status;
}

int leat__record_source_blame(const leat__record_source *source, int64_t record,
                              uint64_t offset, int status)
{
    if ((status == LEAT_EDATA || status == LEAT_EFORMAT) &&
        leat__record_source_check(source) != LEAT_OK)
        return LEAT_EIO;
    return leat__error_context(status, "%s: record %lld at byte %llu",
                               source->map.name, (long long)record,
                               (unsigned long long)offset);
}

int leat__record_source_await(const leat__record_source *source,
                              const leat__record_span record[], int n)
{
    leat__span span[LEAT__RECORD_AWAIT_MAX];
    for (int i = 0; i < n; i++)
        span[i] =
            (leat__span){(size_t)record[i].offset, (size_t)record[i].size};
    return leat__mapped_file_await(&source->map, span, n, source->cancelled);
}

/* Bytes from `from` on that are not in memory up to `end`. */
static int await_seen(const leat__record_source *source, uint64_t *awaited,
                      uint64_t from, uint64_t end)
{
    if (*awaited > from)
        from = *awaited;
    if (from >= end)
        return LEAT_OK;
    const leat__record_span span = {from, end - from};
    int status = leat__record_source_await(source, &span, 1);
    if (!status)
        *awaited = end;
    return status;
}

static int check_running(const leat__record_source *source)
{
    if (!source->cancelled ||
        !atomic_load_explicit(source->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "%s: reading was cancelled",
                      source->map.name);
}

int leat__record_source_walk(const leat__record_source *source,
                             const leat__record_format *format,
                             uint64_t *awaited, leat__record_walk *walk,
                             leat__record_span out[], int n, int *got)
{
    const uint64_t more = awaited ? SEEN_BYTES_AWAITED : SEEN_BYTES;
    leat__record_window window = leat__record_source_window(source);
    uint64_t size = window.size, seen = more;
    *got = 0;
    for (;;) {
        uint64_t left = size - walk->offset;
        window.size = seen < left ? (size_t)(walk->offset + seen) : size;
        window.is_last = window.size == size;
        int status =
            awaited ? await_seen(source, awaited, walk->offset, window.size)
                    : LEAT_OK;
        if (!status)
            status = format->ops->walk(format, &source->file, &window, walk,
                                       out, n, got);
        if (status != LEAT_AGAIN)
            return status;
        status = check_running(source);
        if (status)
            return status;
        seen = walk->needed + more;
    }
}

int leat__record_files_find(const leat__record_files *files, uint64_t at)
{
    int first = 0, end = files->n;
    while (end - first > 1) {
        int middle = first + (end - first) / 2;
        if (files->source[middle].begin <= at)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Cuts what of [from, to) is in one file, and returns it; `*from` goes on. */
static const leat__record_source *cut(const leat__record_files *files,
                                      uint64_t *from, uint64_t to,
                                      leat__span *span)
{
    uint64_t at = *from % files->bytes;
    const leat__record_source *source =
        &files->source[leat__record_files_find(files, at)];
    span->offset = (size_t)(at - source->begin);
    span->bytes = source->map.size - span->offset;
    if (span->bytes > to - *from)
        span->bytes = (size_t)(to - *from);
    *from += span->bytes;
    return source;
}

size_t leat__record_files_ask(const leat__record_files *files, uint64_t from,
                              uint64_t to)
{
    size_t absent = 0;
    while (from < to && files->bytes > 0) {
        leat__span span;
        const leat__record_source *source = cut(files, &from, to, &span);
        absent += leat__mapped_file_ask(&source->map, &span, 1);
    }
    return absent;
}

void leat__record_files_drop(const leat__record_files *files, uint64_t from,
                             uint64_t to)
{
    while (from < to && files->bytes > 0) {
        leat__span span;
        const leat__record_source *source = cut(files, &from, to, &span);
        leat__mapped_file_drop(&source->map, &span, 1);
    }
}

bool leat__record_files_may_block(const leat__record_files *files)
{
    size_t absent = 0;
    for (uint64_t i = 0; i < SAMPLES && files->bytes > 0; i++) {
        leat__span span;
        uint64_t at = files->bytes / SAMPLES * i;
        const leat__record_source *source = cut(files, &at, at + 1, &span);
        absent += leat__mapped_file_absent(&source->map, span);
    }
    return absent > SAMPLES_ABSENT;
}

static uint64_t hash_ends(uint64_t hash, const leat__mapped_file *map)
{
    size_t some = map->size < ENDS_BYTES ? map->size : ENDS_BYTES;
    if (some == 0)
        return hash;
    hash = leat__file_hash_bytes(hash, map->base, some);
    return leat__file_hash_bytes(hash, map->base + map->size - some, some);
}

static void find_identity(const leat__record_files *files, uint64_t out[2])
{
    int step = (files->n + ENDS_FILES - 1) / ENDS_FILES;
    uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < files->n; i++) {
        const leat__mapped_file *map = &files->source[i].map;
        uint64_t size = map->size;
        hash = leat__file_hash_bytes(hash, &size, sizeof(size));
        if (i % step == 0)
            hash = hash_ends(hash, map);
    }
    out[0] = files->bytes;
    out[1] = hash;
}

int leat__record_files_save(const leat__record_files *files, leat_token *token)
{
    uint64_t mine[2];
    find_identity(files, mine);
    return leat_token_put(token, mine, sizeof(mine));
}

int leat__record_files_check(const leat__record_files *files, leat_token *token)
{
    const char *name = files->source[0].map.name;
    uint64_t mine[2], theirs[2];
    int status = leat_token_get(token, theirs, sizeof(theirs));
    if (status)
        return status;
    find_identity(files, mine);
    if (theirs[0] != mine[0])
        return leat_error(LEAT_EINVAL,
                          "%s: %d files with %llu bytes, the token is of a "
                          "data set with %llu",
                          name, files->n, (unsigned long long)mine[0],
                          (unsigned long long)theirs[0]);
    if (theirs[1] != mine[1])
        return leat_error(LEAT_EINVAL,
                          "%s: the files' sizes or bytes are not those of the "
                          "data set that the token is of",
                          name);
    return LEAT_OK;
}
