#include "base/error.h"

#include <leat/launcher.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct launcher {
    const char *rank;
    const char *world_size;
} launcher;

/*
 * Innermost first: mpirun starts its processes by srun, and torchrun runs under
 * either.
 */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

/* A batch script of Slurm has a SLURM_PROCID of 0, but is no step's process. */
static bool has_started(const launcher *from)
{
    const char *rank = getenv(from->rank);
    if (getenv(from->world_size))
        return true;
    return rank &&
           (strcmp(from->rank, "SLURM_PROCID") != 0 || strcmp(rank, "0") != 0);
}

static int read_variable(const char *name, const char *other, long least,
                         long most, int *out)
{
    const char *text = getenv(name);
    if (!text)
        return leat_error(LEAT_EINVAL,
                          "the environment has %s, but not %s: which rank of "
                          "how many is this?",
                          other, name);
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || value < least ||
        value > most)
        return leat_error(LEAT_EINVAL,
                          "%s=%s in the environment: expected a whole number "
                          "from %ld to %ld",
                          name, text, least, most);
    *out = (int)value;
    return LEAT_OK;
}

static int read_pair(const launcher *from, int *rank, int *world_size)
{
    int size, own;
    int status = read_variable(from->world_size, from->rank, 1, INT_MAX, &size);
    if (!status)
        status = read_variable(from->rank, from->world_size, 0, size - 1, &own);
    if (status)
        return status;
    *rank = own;
    *world_size = size;
    return LEAT_OK;
}

int leat_launcher_ranks(int *rank, int *world_size)
{
    if (!rank || !world_size)
        return leat_error(LEAT_EINVAL, "leat_launcher_ranks: NULL");
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
        if (has_started(&launchers[i]))
            return read_pair(&launchers[i], rank, world_size);
    *rank = 0;
    *world_size = 1;
    return LEAT_OK;
}
