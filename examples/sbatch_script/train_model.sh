#!/bin/bash
#SBATCH --job-name=hyperopt-v1
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --gres=gpu:1
#SBATCH --time=24:00:00
#SBATCH --output=logs/%j.out
#SBATCH --error=logs/%j.err

# Load required modules
module load python/3.11
module load cuda/12.0

# Activate environment
source /path/to/venv/bin/activate

# Run training
python train.py \
    --experiment-id $EXPERIMENT_ID \
    --learning-rate 0.001 \
    --batch-size 32 \
    --epochs 100
