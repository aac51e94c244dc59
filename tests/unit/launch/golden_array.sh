#!/bin/bash

# Parameters
#SBATCH --account=desk
#SBATCH --array=0-2%3
#SBATCH --constraint=ib
#SBATCH --cpus-per-task=3
#SBATCH --error=/results/night/jobs/%A_%a_0_log.err
#SBATCH --gpus-per-node=4
#SBATCH --job-name=windtunnel-night-14881f1a
#SBATCH --mem=8192M
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --open-mode=append
#SBATCH --output=/results/night/jobs/%A_%a_0_log.out
#SBATCH --partition=gpu
#SBATCH --qos=night
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --time=90

# setup
module load gcc/13 || exit 1
module load cuda/12.6 || exit 1

# command
export SUBMITIT_EXECUTOR=slurm
exec /opt/python -u -m windtunnel.launch.call /results/night/jobs
