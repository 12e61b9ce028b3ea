/* Marks of buckets, and how what they held is read again. */
#include "base/error.h"
#include "decorators/bucket/bucket_reader.h"

/* Bytes of a mark: samples read since the upstream mark, and the counts. */
enum { READ_BYTES = 6, MARK_BYTES = READ_BYTES + LEAT__BUCKET_COUNT_BYTES };

/* number = number x factor + more; of LEAT__BUCKET_COUNT_BYTES bytes, the
 * lowest first. */
static void append_digit(unsigned char number[], uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (int i = 0; i < LEAT__BUCKET_COUNT_BYTES; i++) {
        carry += (uint64_t)number[i] * factor;
        number[i] = (unsigned char)carry;
        carry >>= 8;
    }
}

/* The remainder; number is divided. */
static uint32_t take_digit(unsigned char number[], uint32_t divisor)
{
    uint64_t rest = 0;
    for (int i = LEAT__BUCKET_COUNT_BYTES - 1; i >= 0; i--) {
        rest = rest << 8 | number[i];
        number[i] = (unsigned char)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

/* Where samples that are held were read, or else all are. */
static const leat__bucket_anchor *find_oldest(const leat__bucket_reader *sorter)
{
    const leat__bucket_anchor *oldest = &sorter->begin;
    if (!sorter->has_counts)
        return &sorter->first;
    for (int i = 0; i < sorter->n; i++) {
        const leat__bucket *one = &sorter->bucket[i];
        if (one->group && one->group->n > 0 && one->from.at < oldest->at)
            oldest = &one->from;
    }
    return oldest;
}

int leat__bucket_mark(leat_reader *reader, leat_token *token)
{
    const leat__bucket_reader *sorter = leat__buckets_of(reader);
    unsigned char state[MARK_BYTES] = {0};
    const leat__bucket_anchor *from = find_oldest(sorter);
    bool is_fresh = sorter->first.mark.size == 0;
    int64_t read = sorter->at - (sorter->input->n - sorter->sorted) - from->at;
    if (is_fresh)
        read = 0;
    for (int i = 0; i < READ_BYTES; i++)
        state[i] = (unsigned char)(read >> 8 * i);
    if (!sorter->has_counts)
        append_digit(state + READ_BYTES, 1, (uint32_t)sorter->flushed);
    for (int i = sorter->n - 1; i >= 0 && sorter->has_counts; i--) {
        const leat__bucket *one = &sorter->bucket[i];
        append_digit(state + READ_BYTES, (uint32_t)one->size,
                     one->group ? (uint32_t)one->group->n : 0);
    }
    int status = is_fresh
                     ? leat_reader_mark(leat__bucket_upstream(sorter), token)
                     : leat_token_put(token, from->mark.bytes, from->mark.size);
    return status ? status : leat_token_put(token, state, sizeof(state));
}

/* Nothing is held. */
static void reset(leat__bucket_reader *sorter)
{
    for (int i = 0; i < sorter->n; i++)
        if (sorter->bucket[i].group)
            sorter->bucket[i].group->n = 0;
    sorter->input->n = sorter->sorted = 0;
    sorter->held = 0;
    sorter->at = 0;
    sorter->begin.at = 0;
    sorter->first.mark.size = 0;
    sorter->is_at_end = false;
    sorter->flushed = 0;
}

/* A sample that was held, or given, is read again. */
static int put_again(leat__bucket_reader *sorter, leat__bucket *to)
{
    int most = sorter->has_counts ? to->target : to->size;
    if (most == 0)
        return LEAT_OK;
    if (sorter->has_counts && to->group && to->group->n == most)
        leat__bucket_drop_oldest(sorter, to->group);
    int status = leat__bucket_put(sorter, to);
    if (!status && !sorter->has_counts && to->group->n == most) {
        leat__bucket_forget(sorter, to->group);
        to->group->n = 0;
    }
    return status;
}

static int not_ours(void)
{
    return leat_error(LEAT_EINVAL, "bucket: the mark is of other data: its "
                                   "samples are not there");
}

/* Fills the buckets with what they held after `read` samples. */
static int read_again(leat__bucket_reader *sorter, int64_t read)
{
    leat_sample dropped;
    int status = leat__bucket_plan(sorter);
    leat_sample_init(&dropped);
    while (!status && read > 0) {
        int to;
        int64_t before = sorter->at - (sorter->input->n - sorter->sorted);
        status = sorter->is_at_end
                     ? not_ours()
                     : leat__bucket_take_one(sorter, &dropped, &to);
        if (!status && to >= 0)
            status = put_again(sorter, &sorter->bucket[to]);
        else if (status == LEAT_EDATA)
            status = LEAT_OK;
        read -= sorter->at - (sorter->input->n - sorter->sorted) - before;
        leat_sample_clear(&dropped);
    }
    leat_sample_finish(&dropped);
    for (int i = 0; i < sorter->n && sorter->has_counts && !status; i++) {
        const leat__bucket *one = &sorter->bucket[i];
        if ((one->group ? one->group->n : 0) != one->target)
            status = not_ours();
    }
    return status;
}

int leat__bucket_seek(leat_reader *reader, leat_position position,
                      leat_token *mark)
{
    leat__bucket_reader *sorter = leat__buckets_of(reader);
    unsigned char state[MARK_BYTES];
    int64_t read = 0;
    if (position.index > 0 && !mark)
        return leat_error(LEAT_EUNSUPPORTED,
                          "bucket: no index finds a bucket again");
    const leat_position to = {position.epoch, 0};
    int status = leat_reader_seek(leat__bucket_upstream(sorter), to, mark);
    if (!status)
        reset(sorter);
    if (status || !mark)
        return status;
    status = leat_token_get(mark, state, sizeof(state));
    if (status)
        return status;
    for (int i = 0; i < READ_BYTES; i++)
        read |= (int64_t)state[i] << 8 * i;
    for (int i = 0; i < sorter->n && sorter->has_counts; i++)
        sorter->bucket[i].target = (int)take_digit(
            state + READ_BYTES, (uint32_t)sorter->bucket[i].size);
    status = read_again(sorter, read);
    if (sorter->has_counts || status)
        return status;
    sorter->flushed = (int)take_digit(state + READ_BYTES, INT32_MAX);
    for (int i = 0; i < sorter->n && i < sorter->flushed; i++) {
        leat__group *group = sorter->bucket[i].group;
        if (!group)
            continue;
        leat__bucket_forget(sorter, group);
        group->n = 0;
    }
    return LEAT_OK;
}

int leat__bucket_restore(leat_reader *reader, leat_token *token)
{
    int status = leat__decorator_restore(reader, token);
    if (!status)
        reset(leat__buckets_of(reader));
    return status;
}
