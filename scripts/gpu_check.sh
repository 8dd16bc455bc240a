#!/usr/bin/env bash
# scripts/gpu_check.sh [FOLDER]: checks the project on a machine with a GPU, in under ten minutes.
# PYTHON is the interpreter (else .venv/bin/python, else python3); the build takes the ninja beside it, which
# compiles several files at a time. scripts/checks/gpu_check.py has the rest.
set -u

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd) || exit 2
own=$root/.venv/bin/python
[[ -x $own ]] || own=python3
export PYTHON=${PYTHON:-$own} PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
command -v -- "$PYTHON" >/dev/null && "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "gpu_check: error: $PYTHON not found, or older than 3.11: name an interpreter with PYTHON=" >&2
  exit 2
}
PYTHON=$(command -v -- "$PYTHON")
[[ $PYTHON == /* ]] || PYTHON=$PWD/$PYTHON  # checks run in another folder than the caller's
# By its path: -m would look into the caller's folder first, which may be another checkout.
PATH=$(dirname -- "$PYTHON"):$PATH exec "$PYTHON" "$root/scripts/checks/gpu_check.py" "$@"
