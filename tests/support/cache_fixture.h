/* cache_fixture.h: cache:dir=PATH over a reader that can be counted and killed.
 */
#ifndef LEAT_TESTS_CACHE_FIXTURE_H
#define LEAT_TESTS_CACHE_FIXTURE_H

#include <leat.h>

#include <stdbool.h>

enum { CACHE_SAMPLES = 200 };

extern leat_sample cache_sample; /* the one that was read last */
extern char cache_root[64];      /* a directory of the test's own */
extern char cache_path[80];      /* the cache in it */
extern char cache_log[4096];     /* the line that was logged last; or "" */

/* The reader below the cache. */
typedef struct cache_source_state {
    int is_stream;    /* no count, no random access */
    int reads;        /* samples that it gave since it was made */
    int64_t identity; /* of its data, in tokens */
    int64_t bad;      /* a bad record; -1: none */
    int kills;        /* the record at which the process dies; -1: none */
} cache_source_state;
extern cache_source_state cache_source;

/* Of a checked fixture. */
void cache_set_up(void);
void cache_tear_down(void);

void cache_remove_all(const char *name);

/* That reader's, of so many samples. */
leat_pipeline *cache_pipeline(int64_t count);

/* A cache over `upstream`, whose reference is taken. Returns the status. */
int cache_open_cached(leat_pipeline *upstream, leat_reader **out);

/* The same over that reader; aborts the test on failure. */
leat_reader *cache_open_source(int64_t count);

/* A file of cache_path's name, `name` after it. */
void cache_put(const char *name, const char *text);
void cache_expect_text(const char *name, const char *text);

/* The next samples, which are good. */
void cache_read_some(leat_reader *reader, int n);

/* Reads an epoch, and expects all of it. */
void cache_expect_epoch(leat_reader *reader, int64_t epoch, int count);

/* Whether there is a file of cache_path's name, `name` after it. */
bool cache_is_there(const char *name);

/* Makes the cache. */
void cache_make(int count);

#endif
