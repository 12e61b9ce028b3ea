#include "tools/database/lmdb_copy.h"

#include "tools/database/lmdb_check.h"

#include <leat/ext/reader.h>

#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

struct lmdb_copy {
    const char *path;
    leat_reader *reader; /* holds the records, see lmdb_check.h */
    int64_t records;
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_cursor_op next; /* how the cursor finds the record to be copied */
    MDB_val last;       /* key */
};

static int database_error(const struct lmdb_copy *copy, int code)
{
    return leat_error(LEAT_EIO, "%s: cannot read it: %s", copy->path,
                      mdb_strerror(code));
}

static int open_cursor(struct lmdb_copy *copy)
{
    MDB_dbi dbi;
    int code = mdb_env_create(&copy->env);
    if (!code)
        code = mdb_env_open(copy->env, copy->path, MDB_RDONLY | MDB_NOLOCK, 0);
    if (!code)
        code = mdb_txn_begin(copy->env, NULL, MDB_RDONLY, &copy->txn);
    if (!code)
        code = mdb_dbi_open(copy->txn, NULL, 0, &dbi);
    if (!code)
        code = mdb_cursor_open(copy->txn, dbi, &copy->cursor);
    MDB_val value;
    if (!code)
        code = mdb_cursor_get(copy->cursor, &copy->last, &value, MDB_LAST);
    if (code == MDB_NOTFOUND) {
        copy->last.mv_size = 0;
        code = 0;
    }
    return code ? database_error(copy, code) : LEAT_OK;
}

int lmdb_copy_open(struct lmdb_copy **out, const char *path)
{
    struct lmdb_copy *copy = calloc(1, sizeof(*copy));
    if (!copy)
        return leat_error(LEAT_ENOMEM, "%s: out of memory", path);
    copy->path = path;
    copy->next = MDB_SET_RANGE;
    int status = lmdb_check(&copy->reader, path, &copy->records);
    if (!status)
        status = open_cursor(copy);
    if (status) {
        lmdb_copy_close(copy);
        return status;
    }
    *out = copy;
    return LEAT_OK;
}

int64_t lmdb_copy_records(const struct lmdb_copy *copy)
{
    return copy->records;
}

void lmdb_copy_last_key(const struct lmdb_copy *copy, const char **key,
                        size_t *size)
{
    *key = copy->last.mv_data;
    *size = copy->last.mv_size;
}

/* Puts the cursor on the record behind the writer's last. */
static int find_next(struct lmdb_copy *copy, struct lmdb_writer *writer,
                     MDB_val *key, MDB_val *value)
{
    if (copy->next == MDB_NEXT)
        return mdb_cursor_get(copy->cursor, key, value, MDB_NEXT);
    copy->next = MDB_NEXT;
    const void *last, *last_value;
    size_t last_size, last_value_size;
    if (lmdb_writer_last(writer, &last, &last_size, &last_value,
                         &last_value_size))
        return mdb_cursor_get(copy->cursor, key, value, MDB_FIRST);
    *key = (MDB_val){last_size, (void *)last};
    int code = mdb_cursor_get(copy->cursor, key, value, MDB_SET_RANGE);
    if (!code && key->mv_size == last_size &&
        !memcmp(key->mv_data, last, last_size))
        code = mdb_cursor_get(copy->cursor, key, value, MDB_NEXT);
    return code;
}

int lmdb_copy_step(struct lmdb_copy *copy, struct lmdb_writer *writer)
{
    MDB_val key, value;
    int code = find_next(copy, writer, &key, &value);
    if (code == MDB_NOTFOUND)
        return LEAT_END;
    if (code)
        return database_error(copy, code);
    return lmdb_writer_put(writer, key.mv_data, key.mv_size, value.mv_data,
                           value.mv_size);
}

void lmdb_copy_close(struct lmdb_copy *copy)
{
    if (!copy)
        return;
    if (copy->cursor)
        mdb_cursor_close(copy->cursor);
    if (copy->txn)
        mdb_txn_abort(copy->txn);
    if (copy->env)
        mdb_env_close(copy->env);
    leat_reader_close(copy->reader);
    free(copy);
}
