/* files:GLOB, paths as samples. */
#include "readers/files.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/memory.h"
#include "pipeline/arguments.h"
#include "pipeline/opening.h"
#include "readers/record/record_pipeline.h"
#include "readers/record/record_reader.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* Folders of patterns that a check looks at where there is no identity: in each
 * epoch, and they may be far away. */
enum { CHECKED_FOLDERS_MAX = 1 << 12 };

typedef struct files_reader {
    leat_reader reader;
    leat__file_list list; /* immutable */
    /* Used by one caller at a time. */
    uint64_t identity[2]; /* their number, and a hash, once it is known */
    uint64_t modified;    /* with it: a hash of times of modification */
    int64_t next;
    atomic_bool cancelled;
    atomic_bool has_begun; /* a name was read */
    /* Set with the identity: hashes of sizes and times of modification, 0
     * without a regular file, and before that of devices and inodes. */
    atomic_uint_fast64_t versions;
    atomic_uint_fast64_t numbers;
} files_reader;

/* What a look at the files gives. */
typedef struct files_look {
    uint64_t versions;
    uint64_t numbers;
    bool has_regular;
} files_look;

static const files_look no_look = {.versions = 0xcbf29ce484222325u,
                                   .numbers = 0xcbf29ce484222325u};

static int files_fields(leat_reader *reader, const leat_field_spec **out,
                        int *n)
{
    static const leat_field_spec name = {.name = "name",
                                         .dtype = LEAT_BYTES,
                                         .ndim = 1,
                                         .shape = {-1},
                                         .content = LEAT_CONTENT_PLAIN};
    (void)reader;
    *out = &name;
    *n = 1;
    return LEAT_OK;
}

static int check_running(const files_reader *files)
{
    if (!atomic_load_explicit(&files->cancelled, memory_order_relaxed))
        return LEAT_OK;
    return leat_error(LEAT_ECANCELLED, "files: reading was cancelled");
}

/* Before a file is looked up, in an opening or later. */
static int check_looking(const files_reader *files)
{
    int status = check_running(files);
    return status ? status : leat__opening_check("files");
}

/* Views of the list. */
static int fill(files_reader *files, int64_t index, leat_sample *sample)
{
    if (!atomic_load_explicit(&files->has_begun, memory_order_relaxed))
        atomic_store_explicit(&files->has_begun, true, memory_order_relaxed);
    const char *path = files->list.path[index];
    const int64_t shape[] = {(int64_t)strlen(path)};
    sample->from.source = "files";
    sample->from.record = index;
    sample->from.key = path;
    sample->from.key_size = (size_t)shape[0];
    return leat_sample_set(sample, sample->nfields, LEAT_BYTES, 1, shape, path);
}

static int files_next(leat_reader *reader, leat_sample *const out[], int n,
                      int *got)
{
    files_reader *files = (files_reader *)reader;
    int status = check_running(files);
    for (; !status && *got < n; *got += !status) {
        if (files->next == files->list.n)
            return LEAT_END;
        status = fill(files, files->next, out[*got]);
        files->next += !status;
    }
    return status;
}

static int files_read_at(leat_reader *reader, const leat_position at[],
                         leat_sample *const out[], int n, int *got)
{
    files_reader *files = (files_reader *)reader;
    int status = check_running(files);
    for (; !status && *got < n; *got += !status)
        status = fill(files, at[*got].index, out[*got]);
    return status;
}

static int files_skip(leat_reader *reader, int64_t n, int64_t *skipped)
{
    files_reader *files = (files_reader *)reader;
    int64_t left = files->list.n - files->next;
    int status = check_running(files);
    if (status)
        return status;
    *skipped = n < left ? n : left;
    files->next += *skipped;
    return *skipped == n ? LEAT_OK : LEAT_END;
}

static int files_count(leat_reader *reader, int64_t *out)
{
    *out = ((files_reader *)reader)->list.n;
    return LEAT_OK;
}

static int files_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    files_reader *files = (files_reader *)reader;
    (void)mark;
    if (position.index > files->list.n)
        return leat_error(LEAT_EINVAL,
                          "files: sample %lld is out of range: there are %d",
                          (long long)position.index, files->list.n);
    files->next = position.index;
    return LEAT_OK;
}

/* Adds the file `path`, *out what it is. Whether it is a regular one. */
static bool look_at(files_look *look, const char *path, struct stat *out)
{
    leat__file_version version = {.size = -1};
    if (stat(path, out) == 0 && S_ISREG(out->st_mode)) {
        version = leat__file_version_of(out);
        look->numbers = leat__file_hash_bytes(look->numbers, &out->st_dev,
                                              sizeof(out->st_dev));
        look->numbers = leat__file_hash_bytes(look->numbers, &out->st_ino,
                                              sizeof(out->st_ino));
        look->has_regular = true;
    }
    look->versions =
        leat__file_hash_bytes(look->versions, &version, sizeof(version));
    return version.size >= 0;
}

/* That the files are those of the names. An @LIST may go, or be another one,
 * once the names are read. */
static int check_names(const files_reader *files)
{
    return atomic_load(&files->has_begun)
               ? leat__file_list_check_folders(&files->list, INT64_MAX)
               : leat__file_list_check(&files->list);
}

/*
 * Of the names without their folders, so that they may be moved, and of the
 * sizes of the files that there are: other data under the same names are found
 * by a reader over this one, such as interleave, which has no identity of its
 * own. Made when it is first asked for, since it looks at each file.
 */
static int set_identity(files_reader *files)
{
    uint64_t hash = 0xcbf29ce484222325u, modified = 0;
    files_look look = no_look;
    struct stat found;
    if (files->identity[1] != 0)
        return LEAT_OK;
    for (int i = 0; i < files->list.n; i++) {
        int status = check_looking(files);
        if (status)
            return status;
        const char *path = files->list.path[i];
        const char *slash = strrchr(path, '/');
        /* Each name with a slash, so that they do not run together. */
        hash = leat__hash_text(hash, "/");
        hash = leat__hash_text(hash, slash ? slash + 1 : path);
        if (!look_at(&look, path, &found))
            continue;
        hash = (hash ^ (uint64_t)found.st_size) * 0x100000001b3u;
        modified =
            leat__file_hash_modified(modified, leat__file_modified(&found));
    }
    int status = check_names(files);
    if (status)
        return status;
    files->identity[1] = hash;
    files->modified = modified;
    atomic_store(&files->numbers, look.numbers);
    atomic_store(&files->versions, look.has_regular ? look.versions : 0);
    return LEAT_OK;
}

static int files_save(leat_reader *reader, leat_token *token)
{
    files_reader *files = (files_reader *)reader;
    int status = set_identity(files);
    return status ? status
                  : leat_token_put(token, files->identity,
                                   sizeof(files->identity));
}

static int files_revision(leat_reader *reader, leat_token *token)
{
    files_reader *files = (files_reader *)reader;
    int status = set_identity(files);
    return status ? status
                  : leat_token_put(token, &files->modified,
                                   sizeof(files->modified));
}

/* Some file systems number files anew; those of two releases may have one size
 * and time, but are in folders of other names then. */
static int check_versions(const files_reader *files, uint64_t versions)
{
    files_look look = no_look;
    struct stat found;
    for (int i = 0; i < files->list.n; i++) {
        int status = leat__opening_check("files");
        if (status)
            return status;
        look_at(&look, files->list.path[i], &found);
    }
    if (look.versions != versions)
        return leat_error(LEAT_EIO,
                          "files: one of %d was written or removed since they "
                          "were opened; open them again",
                          files->list.n);
    return look.numbers == atomic_load(&files->numbers)
               ? LEAT_OK
               : leat__file_list_check_folders(&files->list, INT64_MAX);
}

static int files_check(leat_reader *reader)
{
    const files_reader *files = (const files_reader *)reader;
    uint64_t versions = atomic_load(&files->versions);
    return versions ? check_versions(files, versions)
                    : leat__file_list_check_folders(&files->list,
                                                    CHECKED_FOLDERS_MAX);
}

static int files_restore(leat_reader *reader, leat_token *token)
{
    files_reader *files = (files_reader *)reader;
    uint64_t identity[2];
    int status = leat_token_get(token, identity, sizeof(identity));
    if (!status)
        status = set_identity(files);
    if (status)
        return status;
    if (memcmp(identity, files->identity, sizeof(identity)) != 0)
        return leat_error(LEAT_EINVAL,
                          "files: %d files, and the token is of %llu or of "
                          "others, or of other sizes",
                          files->list.n, (unsigned long long)identity[0]);
    files->next = 0;
    return LEAT_OK;
}

static void files_cancel(leat_reader *reader)
{
    atomic_store(&((files_reader *)reader)->cancelled, true);
}

static int64_t files_memory(leat_reader *reader)
{
    return ((const files_reader *)reader)->list.bytes;
}

static void files_close(leat_reader *reader)
{
    leat__file_list_close(&((files_reader *)reader)->list);
    leat__free(reader);
}

static const leat_reader_ops files_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "files",
    .fields = files_fields,
    .next = files_next,
    .seek = files_seek,
    .cancel = files_cancel,
    .close = files_close,
    .count = files_count,
    .read_at = files_read_at,
    .skip = files_skip,
    .save = files_save,
    .restore = files_restore,
    .memory = files_memory,
    .revision = files_revision,
    .check = files_check,
};

static int files_open(const leat_open *open, leat_reader **out)
{
    files_reader *files = leat__alloc_zero(1, sizeof(*files));
    if (!files)
        return LEAT_ENOMEM;
    files->reader.ops = &files_ops;
    int status = leat__file_list_open(&files->list, open);
    if (!status)
        status = leat__file_list_check(&files->list);
    if (status) {
        leat__file_list_close(&files->list);
        leat__free(files);
        return status;
    }
    files->identity[0] = (uint64_t)files->list.n;
    *out = &files->reader;
    return LEAT_OK;
}

static const leat_argument files_arguments[] = {
    LEAT__FILES_ARGUMENT,
    {0},
};

const leat_reader_type leat__files_reader_type = {
    .size = sizeof(leat_reader_type),
    .name = "files",
    .help = "the names of files",
    .arguments = files_arguments,
    .argument_size = sizeof(leat_argument),
    .open = files_open,
};

int leat_pipeline_files(leat_pipeline **out, const char *const path[], int n)
{
    return leat__record_pipeline(out, &leat__files_reader_type, path, n, "",
                                 NULL);
}
