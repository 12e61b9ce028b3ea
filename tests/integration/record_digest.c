/*
 * record_digest DATABASE: the number of an LMDB's records and a checksum of
 * their keys and values, as liblmdb reads them; no lock file is made.
 */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

static void require(int code, const char *path)
{
    if (!code)
        return;
    fprintf(stderr, "record_digest: %s: %s\n", path, mdb_strerror(code));
    exit(1);
}

static uLong add(uLong digest, MDB_val value)
{
    uLong size = (uLong)value.mv_size;
    digest = crc32(digest, (const Bytef *)&size, sizeof(size));
    return crc32(digest, value.mv_data, (uInt)value.mv_size);
}

int main(int argc, char **argv)
{
    const char *path = argc == 2 ? argv[1] : "";
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    uLong digest = 0;
    int code;
    require(mdb_env_create(&env), path);
    require(mdb_env_open(env, path, MDB_RDONLY | MDB_NOLOCK, 0), path);
    require(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), path);
    require(mdb_dbi_open(txn, NULL, 0, &dbi), path);
    require(mdb_cursor_open(txn, dbi, &cursor), path);
    long n = 0;
    while (!(code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))) {
        digest = add(add(digest, key), value);
        n++;
    }
    require(code == MDB_NOTFOUND ? 0 : code, path);
    printf("%ld records, %08lx\n", n, digest);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return 0;
}
