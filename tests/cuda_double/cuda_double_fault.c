/* What fails, and when: a call, a device or a context. */
#include "cuda_double/cuda_double_state.h"

#include <string.h>

enum {
    FAULT_OF_CALL,   /* it fails */
    FAULT_OF_DEVICE, /* the device is lost */
    FAULT_OF_CONTEXT /* its primary context is destroyed */
};
static atomic_int_fast64_t fault = -1;
static atomic_int fault_error;
static atomic_int fault_kind;
static _Atomic(const char *) fault_name; /* of the calls counted; NULL: all */
static _Atomic(const char *) failed;
static atomic_int_fast64_t loss = -1;
static atomic_int loss_error;

/* Whether this is the one that `counter` counts down to. */
static int is_turn(atomic_int_fast64_t *counter)
{
    int_fast64_t left = atomic_load_explicit(counter, memory_order_relaxed);
    while (left >= 0 && !atomic_compare_exchange_weak_explicit(
                            counter, &left, left - 1, memory_order_relaxed,
                            memory_order_relaxed))
        continue;
    return left == 0;
}

int double_is_faulty(const char *name)
{
    const char *wanted = atomic_load(&fault_name);
    if ((wanted && strcmp(wanted, name) != 0) || !is_turn(&fault))
        return 0;
    atomic_store(&failed, name);
    int kind = atomic_load(&fault_kind);
    if (kind == FAULT_OF_CONTEXT)
        cuda_double_destroy_primary(double_ordinal());
    if (kind == FAULT_OF_DEVICE)
        cuda_double_lose(double_ordinal(),
                         (cudaError_t)atomic_load(&fault_error));
    return kind == FAULT_OF_CALL;
}

cudaError_t double_fault(void)
{
    return (cudaError_t)atomic_load(&fault_error);
}

void double_maybe_lose(double_device *device)
{
    if (is_turn(&loss))
        atomic_store(&device->lost, atomic_load(&loss_error));
}

static void set_fault(int kind, const char *name, int64_t n, cudaError_t error)
{
    atomic_store(&fault, -1);
    atomic_store(&failed, NULL);
    atomic_store(&fault_kind, kind);
    atomic_store(&fault_name, name);
    atomic_store(&fault_error, (int)error);
    atomic_store(&fault, n);
}

void cuda_double_fail_at(int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_CALL, NULL, n, error);
}

void cuda_double_fail_named(const char *name, int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_CALL, name, n, error);
}

void cuda_double_lose_at_call(int64_t n, cudaError_t error)
{
    set_fault(FAULT_OF_DEVICE, NULL, n, error);
}

void cuda_double_destroy_at_call(int64_t n)
{
    set_fault(FAULT_OF_CONTEXT, NULL, n, cudaSuccess);
}

const char *cuda_double_failed(void)
{
    return atomic_load(&failed);
}

void cuda_double_lose(int device, cudaError_t error)
{
    atomic_store(&double_devices[device].lost, (int)error);
}

void cuda_double_lose_at(int64_t n, cudaError_t error)
{
    atomic_store(&loss_error, (int)error);
    atomic_store(&loss, n);
}
