#!/bin/bash

# Parameters
#SBATCH --account=007
#SBATCH --comment='it'"'"'s a "b" #c \\d $HOME'
#SBATCH --constraint='ib&a100'
#SBATCH --cpus-per-task=3
#SBATCH --error='/my results/jobs/%j_0_log.err'
#SBATCH --exclude=n9,n1,n2
#SBATCH --exclusive
#SBATCH --gpus-per-node=a100:4
#SBATCH --job-name=windtunnel-night-14881f1a
#SBATCH --mem=8192M
#SBATCH --no-requeue
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --open-mode=append
#SBATCH --output='/my results/jobs/%j_0_log.out'
#SBATCH --partition=gpu:a100+
#SBATCH --qos=night
#SBATCH --signal=B:TERM@60
#SBATCH --time=361

# setup
source /etc/site.sh
export A='b c'

# command
export SUBMITIT_EXECUTOR=slurm
exec /opt/python -u -m windtunnel.launch.call '/my results/jobs'
