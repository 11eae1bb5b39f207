#!/usr/bin/env bash
# A simulation in bash, written for this test in the way in which many such scripts are: a file of state that is replaced after each step
# and read at the start. It knows nothing of Onward.
set -euo pipefail
steps=${1:-1000}
step=0 energy=1000000
if [ -f state.txt ]; then
  read -r step energy <state.txt
  echo "continuing at step $step"
fi
while [ "$step" -lt "$steps" ]; do
  sleep 0.2
  step=$((step + 1)) energy=$((energy * 999 / 1000))
  echo "$step $energy" >state.txt.tmp
  mv state.txt.tmp state.txt
  echo "step $step energy $energy"
done
echo "simulated $step steps"
