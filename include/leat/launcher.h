/* leat/launcher.h: this process's rank, from its launcher. */
#ifndef LEAT_LAUNCHER_H
#define LEAT_LAUNCHER_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Reads rank and world_size, as in leat_data_layer_options, from the
 * environment that the process's launcher has set. The first of these pairs
 * counts:
 *
 *     torchrun                       RANK, WORLD_SIZE
 *     Open MPI's mpirun              OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *     mpirun of MPICH and its kin    PMI_RANK, PMI_SIZE
 *     Slurm's srun                   SLURM_PROCID, SLURM_STEP_NUM_TASKS
 *
 * Without any of them, as in a Slurm batch script outside of srun: rank 0 of 1.
 * Errors: LEAT_EINVAL if one of a pair is absent or not a number, or the rank
 * is not below the size; the outputs are then unchanged. Only this function
 * reads these variables. Thread safety: any thread, while no thread changes the
 * environment.
 */
LEAT_API int leat_launcher_ranks(int *rank, int *world_size);

#ifdef __cplusplus
}
#endif
#endif
