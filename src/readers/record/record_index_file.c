/* What is kept of an index beside a file; its format is in the header. */
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_access.h"
#include "base/file_place.h"
#include "base/log.h"
#include "base/memory.h"
#include "readers/record/record_index.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "leatidx1"
#define SUFFIX ".leat-index"
enum { NAME = 16, SIZE = 24, MODIFIED = 32, COUNT = 40, OFFSETS_CRC = 48 };
enum { HEADER_CRC = 52, HEADER = LEAT__RECORD_INDEX_HEADER };

/* A file that changed later than this before now may change again without
 * another time of modification, where clocks are coarse. */
#define SETTLED ((int64_t)2 * 1000000000)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "offsets are kept as they are in memory");

static bool ascends(const uint64_t offset[], int64_t count, size_t size)
{
    for (int64_t i = 1; i < count; i++)
        if (offset[i] <= offset[i - 1])
            return false;
    return count == 0 || offset[count - 1] < size;
}

static void write_u64(unsigned char *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void write_u32(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void write_header(unsigned char *out, const char *name, size_t size,
                         int64_t modified, int64_t count)
{
    char format[NAME] = "";
    memcpy(format, name, strnlen(name, NAME));
    memcpy(out, MAGIC, 8);
    memcpy(out + 8, format, NAME);
    write_u64(out + SIZE, size);
    write_u64(out + MODIFIED, (uint64_t)modified);
    write_u64(out + COUNT, (uint64_t)count);
}

static bool is_header(const unsigned char *at, size_t bytes_size,
                      const char *name, size_t size, int64_t modified)
{
    unsigned char expected[HEADER];
    if (bytes_size < HEADER || (bytes_size - HEADER) % 8 != 0)
        return false;
    write_header(expected, name, size, modified,
                 (int64_t)((bytes_size - HEADER) / 8));
    return memcmp(at, expected, OFFSETS_CRC) == 0 &&
           leat__crc32c(0, at, HEADER_CRC) == leat__get_u32(at + HEADER_CRC);
}

bool leat__record_index_parse(const void *bytes, size_t bytes_size,
                              const char *name, size_t size, int64_t modified,
                              leat__record_offsets *out)
{
    const unsigned char *at = bytes;
    if (!is_header(at, bytes_size, name, size, modified))
        return false;
    size_t count = (bytes_size - HEADER) / 8;
    const uint64_t *offset = (const uint64_t *)(const void *)(at + HEADER);
    if (leat__crc32c(0, offset, 8 * count) != leat__get_u32(at + OFFSETS_CRC) ||
        !ascends(offset, (int64_t)count, size))
        return false;
    out->offset = offset;
    out->count = (int64_t)count;
    return true;
}

/* Hidden, so that no pattern for the data matches it. Owned by the caller; NULL
 * without memory. */
static char *index_path(const leat__record_source *source)
{
    const char *name = source->map.name;
    const char *slash = strrchr(name, '/');
    size_t folder = slash ? (size_t)(slash + 1 - name) : 0;
    size_t size = strlen(name) + 1 + sizeof(SUFFIX);
    char *path = leat__alloc(size);
    if (path)
        snprintf(path, size, "%.*s.%s" SUFFIX, (int)folder, name,
                 name + folder);
    return path;
}

/* What an index has to be of, and the memory that it goes into. */
typedef struct indexed {
    const leat__record_source *source;
    const char *format;
    leat__record_index_memory *memory;
    int64_t *counted; /* bytes of its offsets, in `memory` */
} indexed;

/* A sticky directory, as /tmp, keeps data from all but these, and an index may
 * not be weaker than its data. */
static bool is_believed(const leat__record_source *source, uid_t owner)
{
    struct stat above;
    if (owner == geteuid() || owner == 0)
        return true;
    /* Unknown users look alike. */
    bool is_known = leat__file_knows_user(owner);
    if (is_known && owner == source->owner)
        return true;
    char *directory = leat__file_directory(source->map.name);
    bool is_found = directory && !stat(directory, &above);
    leat__free(directory);
    return is_found &&
           (!(above.st_mode & S_ISVTX) || (is_known && owner == above.st_uid));
}

static int check_head(const void *user, const char *head,
                      const struct stat *about)
{
    const indexed *of = user;
    const leat__record_source *source = of->source;
    size_t size = (size_t)about->st_size;
    if (!is_header((const unsigned char *)head, size, of->format,
                   source->map.size, source->version.modified) ||
        !is_believed(source, about->st_uid))
        return leat_error(LEAT_EFORMAT, "no index of this file");
    *of->counted = (int64_t)(size - HEADER);
    return leat__record_index_add_memory(of->memory, source->map.name,
                                         *of->counted);
}

static int load(const char *path, const indexed *of, leat__record_offsets *out)
{
    const leat__record_source *source = of->source;
    char *bytes;
    size_t size;
    /* A record has a byte at least. */
    size_t limit = HEADER + 8 * source->map.size;
    if (leat__file_access(path, R_OK))
        return LEAT_EIO;
    int status =
        leat__file_read_own(&bytes, &size, path, limit, check_head, of);
    if (status)
        return status;
    if (!leat__record_index_parse(bytes, size, of->format, source->map.size,
                                  source->version.modified, out)) {
        leat__free(bytes);
        return LEAT_EFORMAT;
    }
    out->memory = bytes;
    return LEAT_OK;
}

int leat__record_index_load(const leat__record_source *source,
                            const char *format,
                            leat__record_index_memory *memory,
                            leat__record_offsets *out)
{
    int64_t counted = 0;
    const indexed of = {source, format, memory, &counted};
    char *path = index_path(source);
    int status = path ? load(path, &of, out) : LEAT_ENOMEM;
    leat__free(path);
    if (status)
        atomic_fetch_sub(&memory->bytes, counted);
    return status;
}

/* As /dev/stdin does: what lies beside that name has nothing to do with the
 * file. */
static bool leads_to_descriptor(const char *name)
{
    static const char proc[] = "/proc/";
    char to[sizeof(proc) - 1];
    ssize_t n = readlink(name, to, sizeof(to));
    return n == (ssize_t)sizeof(to) && memcmp(to, proc, sizeof(to)) == 0;
}

static bool is_settled(const leat__record_source *source)
{
    struct timespec clock;
    clock_gettime(CLOCK_REALTIME, &clock);
    int64_t now = (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
    if (source->version.modified > now)
        leat__log(LEAT_LOG_WARNING,
                  "%s: its index is not kept: its time of modification is yet "
                  "to come",
                  source->map.name);
    return source->version.modified < now - SETTLED;
}

static int keep(const char *path, const leat__record_source *source,
                const char *format, const leat__record_offsets *offsets)
{
    size_t bytes = 8 * (size_t)offsets->count;
    unsigned char *image = offsets->memory;
    write_header(image, format, source->map.size, source->version.modified,
                 offsets->count);
    write_u32(image + OFFSETS_CRC, leat__crc32c(0, image + HEADER, bytes));
    write_u32(image + HEADER_CRC, leat__crc32c(0, image, HEADER_CRC));
    /* Who may not read the data does not learn its sizes. */
    return leat__file_write_like(path, source->map.name, image, HEADER + bytes);
}

void leat__record_index_keep(const leat__record_source *source,
                             const char *format,
                             const leat__record_offsets *offsets)
{
    /* A relative name leads elsewhere after chdir. */
    if (!is_settled(source) || !leat__record_source_has_name(source) ||
        leads_to_descriptor(source->map.name) ||
        leat__record_source_check(source) != LEAT_OK)
        return;
    char *path = index_path(source);
    if (!path || keep(path, source, format, offsets) != LEAT_OK)
        leat__log(LEAT_LOG_WARNING, "%s: its index cannot be kept: %s",
                  source->map.name, leat_last_error());
    leat__free(path);
}
