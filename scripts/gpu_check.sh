#!/usr/bin/env bash
#
# Checks the project on a machine with a GPU, in under ten minutes, with one command:
#
#   scripts/gpu_check.sh [FOLDER]
#
# Builds the CUDA operators with the torch that is there, runs the CUDA tests, compute-sanitizer's
# memcheck and initcheck and a short training of every agent, and measures (bench*.py).
# FOLDER (else $OUT, else docs/benchmarks) gets gpu_check.json (device, commit, command, every check),
# gpu_bench.json, gpu_training.json, gpu_replay.json and gpu_check.log. Files of these names that lie
# there go first; the new ones are written anew after every check and every row of bench.py, so that
# what stops the script loses only what it was at.
#
# Variables: PYTHON is the interpreter (else .venv/bin/python, else python3); PYTHONPATH may hold
# packages such as torchrl and tensordict; GPU_CHECK_LIMIT_S is the time for everything (530);
# GPU_CHECK_ONLY="NAME ..." leaves out all checks but the build and these, to repeat what a first run
# had no time for, into a folder of its own; MARINENAV_COMMIT is the commit to record where the copy has no history.
#
# Exit status: 0, and what was not checked is said; 1 if a check failed or a signal stopped the
# script; 2 if this machine cannot run the checks.

set -u -o pipefail

readonly COMMAND="scripts/gpu_check.sh $*"
ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd) || exit 2
readonly ROOT

refuse() {
  echo "gpu_check: error: $*" >&2
  exit 2
}

# The folder is meant from where the user stands.
folder=${1:-${OUT:-$ROOT/docs/benchmarks}}
mkdir -p -- "$folder" || refuse "cannot make the folder $folder: name another one"
folder=$(cd -- "$folder" && pwd) || refuse "cannot enter the folder $folder: name another one"
cd -- "$ROOT" || exit 2

python=${PYTHON:-}
if [[ -z $python ]]; then
  python=python3
  [[ -x .venv/bin/python ]] && python=$ROOT/.venv/bin/python
fi
command -v -- "$python" >/dev/null || refuse "$python not found: name an interpreter with PYTHON="
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  refuse "$("$python" --version 2>&1) is too old: name one >= 3.11 with PYTHON="
export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1

readonly limit_s=${GPU_CHECK_LIMIT_S:-530}
# Time limits in seconds, against a check that hangs; none gets more than is left of all.
readonly build_s=180
readonly operators_s=30
readonly tests_s=180 sanitizer_s=180
readonly agent_s=100
readonly bench_s=120
readonly bench_training_s=130
readonly bench_replay_s=60

scratch=$(mktemp -d) || refuse "cannot make a temporary folder: set TMPDIR"
trap 'rm -rf -- "$scratch"' EXIT
answer=$("$python" -m scripts.checks.gpu_check_record begin "$scratch" "$COMMAND") || exit 2
{
  read -r architecture
  read -r -a agents
  read -r -a cuda_tests
} <<<"$answer"
for name in ${GPU_CHECK_ONLY:-}; do
  known=" tests memcheck initcheck bench bench_training bench_replay ${agents[*]/#/train_} "
  [[ $known == *" $name "* ]] || refuse "GPU_CHECK_ONLY names $name: give some of$known"
done
[[ -n ${GPU_CHECK_ONLY:-} && -e $folder/gpu_check.json ]] &&
  refuse "$folder holds a run's records, which GPU_CHECK_ONLY would replace: name another folder"
rm -f -- "$folder"/gpu_{check,bench,training,replay}.json "$folder/gpu_check.log"

# record note|finish|stop: writes gpu_check.json and gpu_check.log; all but note print the verdict.
record() {
  "$python" -m scripts.checks.gpu_check_record "$1" "$scratch" "$folder" "$SECONDS"
}

# note NAME passed|failed|skipped SECONDS TEXT
note() {
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$scratch/results.tsv"
  printf 'gpu_check: %s %s (%s s)%s\n' "$1" "$2" "$3" "${4:+: $4}"
  record note
}

# check NAME SECONDS COMMAND...: runs a command within its time and the time left for everything. To
# be run in the background: bash hears a signal while it waits for that, not during a command.
check() {
  local name=$1 limit=$2 log=$scratch/$1.log begun=$SECONDS left=$((limit_s - SECONDS)) status
  shift 2
  if [[ -n ${GPU_CHECK_ONLY:-} && " build operators $GPU_CHECK_ONLY " != *" $name "* ]]; then
    note "$name" skipped 0 "GPU_CHECK_ONLY leaves it out"
    return 0
  fi
  ((left < limit)) && limit=$left
  if ((limit < 1)); then
    note "$name" skipped 0 "no time was left of $limit_s s"
    return 1
  fi
  printf '$ %s\n' "$*" >"$log"
  timeout --kill-after=5 "$limit" "$@" >>"$log" 2>&1 &
  trap 'kill "$!"; note "$name" failed $((SECONDS - begun)) "stopped by a signal"; exit 1' TERM
  wait "$!"
  status=$?
  trap '' TERM
  if ((status == 0)); then
    note "$name" passed $((SECONDS - begun)) ""
    return 0
  fi
  if grep -q -e 'Device not supported' -e 'not supported on this device' "$log" &&
    [[ $name == memcheck || $name == initcheck ]]; then
    note "$name" skipped $((SECONDS - begun)) "compute-sanitizer does not support this device"
    return 0
  fi
  local why="exit status $status"
  ((status == 124 || status == 137)) && why="not finished within $limit s"
  note "$name" failed $((SECONDS - begun)) "$why"
  { echo "gpu_check: the end of what $name printed:" && tail -n 25 "$log"; } >&2
  return 1
}

# alone NAME SECONDS COMMAND...: a check with nothing beside it; fails if it does.
alone() {
  check "$@" &
  wait "$!"
}

finish() {
  record finish
  exit $?
}

stop() {
  trap '' TERM INT
  local running
  running=$(jobs -p)
  # shellcheck disable=SC2086  # a list of numbers
  [[ -n $running ]] && kill $running 2>/dev/null
  wait
  record stop
  exit $?
}
trap stop TERM INT

# ---- build ---------------------------------------------------------------------------------------

alone build "$build_s" env FORCE_CUDA=1 NO_CUDA= TORCH_CUDA_ARCH_LIST="$architecture" \
  "$python" setup.py --quiet build_ext --inplace || finish
alone operators "$operators_s" \
  "$python" -c 'from marinenav_env.envs.checks import check_device; check_device("cuda")' || finish

# ---- correctness, side by side -------------------------------------------------------------------

check tests "$tests_s" "$python" -m pytest -q -p no:cacheprovider -k cuda "${cuda_tests[@]}" &

sanitizer=$(command -v compute-sanitizer || true)
for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
  [[ -z $sanitizer && -x $home/bin/compute-sanitizer ]] && sanitizer=$home/bin/compute-sanitizer
done
for tool in memcheck initcheck; do
  if [[ -n $sanitizer ]]; then
    # torch's caching would hide accesses outside a tensor; its probing of the driver is no error.
    check "$tool" "$sanitizer_s" env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool "$tool" \
      --report-api-errors no --error-exitcode 99 "$python" scripts/checks/sanitizer_run.py &
  else
    note "$tool" skipped 0 "compute-sanitizer is not installed"
  fi
done
wait

# ---- a short training of every agent, side by side -----------------------------------------------

for agent in "${agents[@]}"; do
  check "train_$agent" "$agent_s" "$python" train_RL_agents/train.py --agent "$agent" \
    --device cuda --output "$scratch/runs/$agent" worlds=512 total_steps=100000 \
    updates.samples_per_insert=0.25 updates.batch_size=1024 log.interval_steps=20000 \
    evaluation.final_episodes=10 &
done
wait

# ---- throughput, alone on the machine ------------------------------------------------------------

alone bench "$bench_s" "$python" scripts/bench.py --device cuda --modes step inference \
  --worlds 1 16 256 4096 65536 --repeats 5 --seconds 0.1 --max-mem-delta 1048576 \
  --json "$folder/gpu_bench.json"
alone bench_training "$bench_training_s" "$python" scripts/bench.py --device cuda --modes train \
  --repeats 3 --seconds 1 --json "$folder/gpu_training.json"
alone bench_replay "$bench_replay_s" "$python" scripts/bench/replay.py --device cuda \
  --json "$folder/gpu_replay.json"

finish
