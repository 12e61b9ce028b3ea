/* For builds without a profiler. */
#include "base/trace.h"

const leat__trace_ops *const leat__tracer = NULL;
