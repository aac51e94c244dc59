#!/bin/bash
#SBATCH --job-name=windtunnel-driver-mine
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem=1024M
#SBATCH --time=2-00:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --output='/home/ada/my results/driver.log'
#SBATCH --chdir=/home/ada
#SBATCH --partition=main
#SBATCH --account=lab
#SBATCH --requeue
job=$SLURM_JOB_ID conf=${SLURM_CONF-}
# What Slurm says of this job must not reach the jobs that its driver submits.
for name in $(compgen -e | grep -E '^(SLURM_|SLURMD_|SBATCH_|SALLOC_|SRUN_|PMI|OMPI_COMM_|OMPI_UNIVERSE_|HYDI_|MPI_LOCAL)'); do unset "$name"; done
[ -z "$conf" ] || export SLURM_CONF=$conf
trap 'echo "time is nearly up: asking Slurm to start this driver again"; scontrol requeue "$job"' USR1
export WINDTUNNEL_DRIVER_JOB=$job WINDTUNNEL_COMMAND='windtunnel sweep mine --driver=sbatch'
/opt/bin/python -m windtunnel sweep 'a study' 'x=[1,2]' &
driver=$!
# A signal ends `wait` early.
while kill -0 "$driver" 2>/dev/null; do wait "$driver"; done
wait "$driver"
