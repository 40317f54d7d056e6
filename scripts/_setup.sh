# Sourced by the other scripts: makes .venv from a lock file, once for each content of it, with plain pip.
# Usage: setup_venv requirements.lock | requirements-dev.lock
setup_venv() {
  local lock=$1 python stamp want
  stamp=.venv/.installed
  want=$(cat "$lock" pyproject.toml | sha256sum | cut -d' ' -f1)
  # The development lock holds all of the other one, so it serves for both.
  if [ "$lock" = requirements.lock ] && [ -f "$stamp" ] && grep -q "requirements.lock $want" "$stamp"; then return; fi
  if [ -f "$stamp" ] && grep -q "$lock $want" "$stamp"; then return; fi
  python=$(_find_python) || return 1
  echo "Setting up .venv from $lock with $("$python" --version) ..." >&2
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
  {
    echo "$lock $want"
    if [ "$lock" = requirements-dev.lock ]; then
      echo "requirements.lock $(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)"
    fi
  } > "$stamp"
}

_find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    if [ -n "$candidate" ] && command -v "$candidate" > /dev/null \
      && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2
  return 1
}
