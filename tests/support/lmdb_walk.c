#include "support/lmdb_walk.h"
#include "readers/lmdb/lmdb_index.h"

void lmdb_walk_small_record(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%05d", number);
    out->value_size = (size_t)sprintf((char *)out->value, "value %d", number);
}

void lmdb_walk_mixed_record(int number, fixture_record *out)
{
    out->key_size = (size_t)sprintf(out->key, "%08d", number);
    out->value_size = (size_t)number * 37 % 9000;
    memset(out->value, number, out->value_size);
}

static unsigned touched;

static void touch(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += 64)
        touched += bytes[i];
    if (size)
        touched += bytes[size - 1];
}

int lmdb_walk_all(const unsigned char *bytes, size_t size, int64_t *count)
{
    static leat__lmdb_walker walker;
    leat__lmdb_map map;
    leat__lmdb_index *index;
    leat__lmdb_entry entry[16];
    int got;
    *count = 0;
    int status = leat__lmdb_map_latest(&map, "memory", bytes, size);
    if (status)
        return status;
    if (leat__lmdb_index_create(&index, &map, NULL) == LEAT_OK) {
        for (int64_t i = 0; i < index->count; i++) {
            if (leat__lmdb_index_read(index, i, entry) == LEAT_OK)
                touch(entry->value, entry->value_size);
        }
        leat__lmdb_index_destroy(index);
    }
    leat__lmdb_walker_init(&walker, &map);
    leat__lmdb_walker_seek(&walker, (int64_t)map.meta.entries / 2);
    leat__lmdb_walker_init(&walker, &map);
    while (!(status = leat__lmdb_walker_next(&walker, entry, 16, &got))) {
        for (int i = 0; i < got; i++) {
            touch(entry[i].key, entry[i].key_size);
            touch(entry[i].value, entry[i].value_size);
        }
        *count += got;
    }
    if (status == LEAT_END)
        ck_assert_uint_eq((uint64_t)*count, map.meta.entries);
    else
        ck_assert_int_eq(leat__lmdb_walker_next(&walker, entry, 16, &got),
                         status);
    return status;
}

unsigned char *lmdb_walk_small_database(size_t *size)
{
    char directory[FIXTURE_PATH], path[FIXTURE_PATH + 16];
    fixture_directory(directory);
    MDB_env *env = fixture_env(directory, 0);
    fixture_put(env, lmdb_walk_small_record, 0, 300, 0);
    fixture_put(env, lmdb_walk_mixed_record, 0, 60, 0);
    mdb_env_close(env);
    snprintf(path, sizeof(path), "%s/data.mdb", directory);
    unsigned char *bytes = fixture_load(path, size);
    fixture_remove(directory);
    return bytes;
}
