/*
 * peer.h: readers of one pipeline, a thread each. One at a time makes a
 * cache:dir of it, and the others read it once it is complete.
 */
#ifndef LEAT_TOOLS_BENCH_PEER_H
#define LEAT_TOOLS_BENCH_PEER_H

#include <leat/pipeline.h>
#include <leat/reader.h>

#include <stdbool.h>

/*
 * Opens one more reader beside `first`, of which NULL is none yet. Where the
 * caches are first's to make, it reads one pass, which ends at its beginning.
 * LEAT_ESTATE: no pass completes them, as where a take follows. A signal ends
 * the program.
 */
int peer_open(leat_reader **out, const leat_pipeline *pipeline,
              leat_reader *first);

/* The same, and true. Other errors end the program; where no pass completes the
 * caches, a line says that one thread alone reads, and there is none. */
bool peer_require(leat_reader **out, const leat_pipeline *pipeline,
                  leat_reader *first);

#endif
