/* The reader of samples that threads of the user's send. */
#include "base/memory.h"
#include "pipeline/reader_table.h"
#include "readers/push.h"

#include <string.h>

typedef struct push_reader {
    leat_reader reader;
    leat__push_receiver receiver;
} push_reader;

static leat__push_receiver *receiver_of(leat_reader *reader)
{
    return &((push_reader *)reader)->receiver;
}

static int push_fields(leat_reader *reader, const leat_field_spec **out, int *n)
{
    const leat_push *push = receiver_of(reader)->push;
    *out = push->spec;
    *n = push->nfields;
    return LEAT_OK;
}

/* Appends `taken`, copied. */
static int copy_taken(leat__push_receiver *receiver, leat_sample *out)
{
    const leat_sample *taken = &receiver->taken;
    int n = out->nfields;
    if (n + taken->nfields > LEAT_MAX_FIELDS)
        return leat_error(LEAT_EINVAL,
                          "%s: a sample has %d fields, and %d are added: "
                          "expected at most %d in sum",
                          receiver->push->name, n, taken->nfields,
                          LEAT_MAX_FIELDS);
    memcpy(&out->field[n], taken->field,
           (size_t)taken->nfields * sizeof(out->field[0]));
    out->nfields += taken->nfields;
    out->stable = 0;
    out->from.source = taken->from.source;
    out->from.record = taken->from.record;
    out->from.key = taken->from.key;
    out->from.key_size = taken->from.key_size;
    int status = leat_sample_own(out);
    if (status)
        out->nfields = n;
    return status;
}

static int push_next(leat_reader *reader, leat_sample *const out[], int n,
                     int *got)
{
    leat__push_receiver *receiver = receiver_of(reader);
    int status = LEAT_OK;
    if (!receiver->has_sample)
        status = leat__push_receive(receiver, out, n, got);
    if (status || !receiver->has_sample)
        return status;
    status = copy_taken(receiver, out[0]);
    if (status)
        return status;
    leat_sample_clear(&receiver->taken);
    receiver->has_sample = false;
    *got = 1;
    return LEAT_OK;
}

static int push_seek(leat_reader *reader, leat_position position,
                     leat_token *mark)
{
    leat__push_receiver *receiver = receiver_of(reader);
    (void)mark;
    if (position.index > 0)
        return leat_error(LEAT_EUNSUPPORTED, "%s: a queue is read in order",
                          receiver->push->name);
    return leat__push_restart(receiver);
}

static void push_cancel(leat_reader *reader)
{
    leat__push_cancel(receiver_of(reader));
}

static void push_close(leat_reader *reader)
{
    leat_sample_finish(&receiver_of(reader)->taken);
    leat__free(reader);
}

static int push_save(leat_reader *reader, leat_token *token)
{
    (void)token;
    return leat_error(LEAT_ESTATE,
                      "%s: the samples of a queue are gone once they are read: "
                      "no run can be resumed from them",
                      receiver_of(reader)->push->name);
}

static int push_restore(leat_reader *reader, leat_token *token)
{
    return push_save(reader, token);
}

static int64_t push_memory(leat_reader *reader)
{
    return (int64_t)atomic_load_explicit(&receiver_of(reader)->push->held,
                                         memory_order_relaxed);
}

static const leat_reader_ops push_ops = {
    .size = sizeof(leat_reader_ops),
    .name = "push",
    .fields = push_fields,
    .next = push_next,
    .seek = push_seek,
    .cancel = push_cancel,
    .close = push_close,
    .can_seek = leat__reader_no,
    .save = push_save,
    .restore = push_restore,
    .memory = push_memory,
};

static int push_open(const leat_open *open, leat_reader **out)
{
    push_reader *made = leat__alloc_zero(1, sizeof(*made));
    if (!made)
        return LEAT_ENOMEM;
    made->reader.ops = &push_ops;
    made->receiver.reader = &made->reader;
    made->receiver.push = (void *)(uintptr_t)leat_args_object(open->args);
    leat_sample_init(&made->receiver.taken);
    *out = &made->reader;
    return LEAT_OK;
}

static const leat_reader_type push_type = {
    .size = sizeof(leat_reader_type),
    .name = "push",
    .may_block = 1,
    .open = push_open,
};

static void release(void *push)
{
    leat_push_unref(push);
}

int leat_pipeline_push(leat_pipeline **out, leat_push *push)
{
    leat_push_ref(push);
    return leat_pipeline_create(out, &push_type, NULL, push, release, NULL, 0);
}
