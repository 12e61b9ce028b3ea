#include "readers/record/record_requests.h"

/* Records read at random before residency is probed again, once a probe found
 * all of them resident. */
#define PROBE_INTERVAL 4096

/* An address of a record, and its size. */
typedef struct record_address {
    uint64_t where; /* as in a locator */
    uint64_t size;
} record_address;

static void sort(record_address at[], int n)
{
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++) {
            record_address moved = at[i];
            int to = i;
            for (; to >= gap && at[to - gap].where > moved.where; to -= gap)
                at[to] = at[to - gap];
            at[to] = moved;
        }
}

/* Requests sorted records, file by file. Returns the pages that were absent. */
static size_t ask_sorted(const leat__record_files *files,
                         const record_address at[], int n)
{
    size_t absent = 0;
    leat__span spans[LEAT__SPANS_MAX];
    for (int first = 0; first < n;) {
        int file = leat__record_address_file(at[first].where);
        int used = 0;
        for (; first < n && leat__record_address_file(at[first].where) == file;
             first++)
            spans[used++] = (leat__span){
                (size_t)leat__record_address_offset(at[first].where),
                (size_t)at[first].size};
        absent += leat__mapped_file_ask(&files->source[file].map, spans, used);
    }
    return absent;
}

void leat__record_requests_make(leat__record_requests *requests,
                                const leat__record_index *index,
                                const leat_position at[], int n)
{
    record_address address[LEAT__SPANS_MAX];
    size_t absent = 0;
    int64_t unprobed =
        atomic_load_explicit(&requests->unprobed, memory_order_relaxed);
    if (unprobed > 0) {
        atomic_store_explicit(&requests->unprobed, unprobed - n,
                              memory_order_relaxed);
        return;
    }
    for (int done = 0; done < n; done += LEAT__SPANS_MAX) {
        int more = n - done < LEAT__SPANS_MAX ? n - done : LEAT__SPANS_MAX;
        for (int i = 0; i < more; i++) {
            int64_t record = at[done + i].index;
            int file = leat__record_index_find(index, record);
            leat__record_span span = leat__record_index_span(
                index, file, record - index->first[file]);
            address[i] = (record_address){
                leat__record_address(file, span.offset), span.size};
        }
        sort(address, more);
        absent += ask_sorted(index->files, address, more);
    }
    if (absent == 0)
        atomic_store_explicit(&requests->unprobed, PROBE_INTERVAL,
                              memory_order_relaxed);
}
