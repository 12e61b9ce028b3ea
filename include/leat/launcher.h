/* leat/launcher.h: which of several ranks this process is. */
#ifndef LEAT_LAUNCHER_H
#define LEAT_LAUNCHER_H

#include <leat/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets rank and world_size, as leat_data_layer_options has them, to what the
 * launcher of this process has put into its environment. The first of these:
 *
 *     torchrun                       RANK, WORLD_SIZE
 *     Open MPI's mpirun              OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *     mpirun of MPICH and its kin    PMI_RANK, PMI_SIZE
 *     Slurm's srun                   SLURM_PROCID, SLURM_STEP_NUM_TASKS
 *
 * If there is none, as in a Slurm batch script outside of srun: rank 0 of 1.
 * LEAT_EINVAL: one of a pair is absent, is no number, or the rank is not below
 * the size; both are as they were then. Nothing else in leat looks at these.
 * Thread safety: any thread, while none changes the environment.
 */
LEAT_API int leat_launcher_ranks(int *rank, int *world_size);

#ifdef __cplusplus
}
#endif
#endif
