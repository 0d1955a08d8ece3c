# Sourced by ./roux, tests/run and .ci/run: from a fresh clone to a built program, and quiet when nothing is to do.
#
#   ROUX_PRESET      dev (default), release, cuda, wheel: see CMakePresets.json
#   ROUX_DEPS        where LibTorch lies (CUDA: the same with -cuda). Unset: .deps of the checkout, a link into
#                    ${XDG_CACHE_HOME:-~/.cache}/roux, which checkouts with the same pins share
#   ROUX_CUDA_LIBRARIES  link: of CUDA only what compiling and linking need, for a machine without a GPU
#   ROUX_SKIP_BUILD  1: take what is built
#   CI               set: a warning of the compiler is an error
# Everything it says goes to standard error, so that the program's own output stays clean. Python runs with -I: it would
# look for pip in the current folder first.
set -euo pipefail

roux_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
roux_preset=${ROUX_PRESET:-dev}
roux_build=$roux_root/build/$roux_preset

say() { printf 'roux: %s\n' "$*" >&2; }
refuse() {
  local status=$1
  shift
  printf '%s\n' "$@" >&2
  exit "$status"
}

# setup_packages SECTION...: installs what is missing, or prints the line that does.
setup_packages() {
  command -v dpkg-query >/dev/null || return 0  # another system: CMake names what it does not find
  local wanted missing
  wanted=$(awk -v sections=" $* " '/^#/ {next} /^\[/ {on = index(sections, " " substr($0, 2, length($0) - 2) " "); next}
                                   on {print}' "$roux_root/runner/cmake/debian-packages.txt")
  missing=$(comm -23 <(sort <<<"$wanted") \
            <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
              sed -n 's/^installed //p' | sort))
  [ -n "$missing" ] || return 0
  missing=$(tr '\n' ' ' <<<"$missing" | sed 's/ *$//')
  local as=()
  if [ "$(id -u)" != 0 ]; then
    if ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
      refuse 2 "error: Debian packages are missing, and installing them needs root" \
        "  hint: sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing"
    fi
    as=(sudo -n)
  fi
  say "installing Debian packages: $missing"
  local log
  log=$(mktemp "${TMPDIR:-/tmp}/roux-apt.XXXXXX")  # not a name that another user could have taken
  as+=(env DEBIAN_FRONTEND=noninteractive apt-get -q)
  if ! { "${as[@]}" update && "${as[@]}" install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    refuse 1 "error: apt-get could not install $missing" "  hint: the whole output is in $log"
  fi
  rm -f "$log"
}

# cache_folder [PINS...]: what is fetched lies there, and the record of .ci/run, for all checkouts with the same pins.
# Empty where there is no HOME, or where it cannot be written.
cache_folder() {
  local base=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}} folder
  case $base in /*) ;; *) return 0 ;; esac
  folder=$base/roux/$(pins_hash "$@")
  if mkdir -p "$folder" 2>/dev/null && [ -w "$folder" ]; then echo "$folder"; fi
}

# pins_hash [PINS...]: of those of LibTorch and of what belongs to its release, unless others are named.
pins_hash() {
  [ $# -gt 0 ] || set -- "$roux_root"/runner/cmake/{libtorch,cuda-link,cuda-run}.txt \
    "$roux_root"/tests/verify/{requirements,constraints}.txt
  cat "$@" | sha256sum | cut -c 1-16
}

# deps_place SUFFIX PINS...: the folder that has what these pins name, or is to get it.
deps_place() {
  local suffix=$1 own=$roux_root/.deps$1 cache apart=()
  shift
  # Another release of Arrow does not fetch LibTorch again, nor the other way round.
  [ "$suffix" != -arrow ] || apart=("$@")
  # A link is followed here, and only here: in the compilers' commands the folder keeps its name within the checkout,
  # which lets several checkouts share what the compiler cache holds.
  if [ -n "${ROUX_DEPS:-}" ]; then
    readlink -m "$ROUX_DEPS$suffix"
  elif has_wheels "$own" "$@"; then
    readlink -m "$own"
  elif cache=$(cache_folder "${apart[@]}") && [ -n "$cache" ]; then
    echo "$cache/deps$suffix"
  else
    echo "$own"  # a link to what has other pins is replaced, not followed: other checkouts use that folder
  fi
}

# link_deps SUFFIX FOLDER: the checkout's name of a folder of the cache. It takes the place of what has other pins.
link_deps() {
  local own=$roux_root/.deps$1
  if [ -n "${ROUX_DEPS:-}" ] || [ "$(readlink -m "$own")" = "$2" ]; then return 0; fi
  rm -rf "$own"
  ln -sfn "$2" "$own"
}

# setup_libtorch: the pinned wheels in .deps, that of Arrow in .deps-arrow, and for the presets cuda and wheel those of
# CUDA in .deps-cuda.
setup_libtorch() {
  local deps pins=$roux_root/runner/cmake
  deps=$(deps_place '' "$pins/libtorch.txt")
  fetch_wheels "$deps" "LibTorch (0.5 GB, unpacked 1.2 GB)" "$pins/libtorch.txt" || return
  link_deps '' "$deps"
  deps=$(deps_place -arrow "$pins/arrow.txt")
  fetch_wheels "$deps" "Arrow (55 MB, unpacked 0.2 GB)" "$pins/arrow.txt" || return
  link_deps -arrow "$deps"
  case $roux_preset in cuda | wheel) ;; *) return 0 ;; esac
  local what="NCCL and CUDA's headers (0.2 GB)" cuda=("$pins/cuda-link.txt")
  if [ "${ROUX_CUDA_LIBRARIES:-}" != link ]; then
    what="CUDA's libraries (2 GB, unpacked 2.7 GB)"
    cuda+=("$pins/cuda-run.txt")
  fi
  deps=$(deps_place -cuda "${cuda[@]}")
  fetch_wheels "$deps" "$what" "${cuda[@]}" || return
  link_deps -cuda "$deps"
}

# fetch_wheels FOLDER WHAT PINS...: whole or not at all. A second process waits for the first. A folder that holds more
# than is asked for will do.
fetch_wheels() {
  local folder=$1 what=$2
  shift 2
  has_wheels "$folder" "$@" && return 0
  mkdir -p "$(dirname "$folder")"
  (
    flock -n 8 || { say "waiting for another process that fetches $what"; flock 8; }
    has_wheels "$folder" "$@" && exit 0
    local python='' candidate
    for candidate in python3 /usr/bin/python3; do
      "$candidate" -I -m pip --version >/dev/null 2>&1 && { python=$candidate; break; }
    done
    [ -n "$python" ] || refuse 2 "error: no python3 with pip; it fetches LibTorch and is not used afterwards" \
      "  hint: apt-get install python3-pip"
    [ "$(uname -m)" = x86_64 ] || refuse 2 "error: the pinned LibTorch is for x86_64, this machine is $(uname -m)"
    rm -rf "$folder".partial.*
    local partial=$folder.partial.$$ options=() tag
    for tag in manylinux_2_28 manylinux_2_27 manylinux_2_25 manylinux_2_18 manylinux_2_17 manylinux2014 \
               manylinux_2_12 manylinux_2_5; do
      options+=(--platform "${tag}_x86_64")
    done
    for tag in "$@"; do options+=(-r "$tag"); done
    say "fetching $what into $folder"
    if ! "$python" -I -m pip install --no-deps --no-compile --require-hashes --target "$partial" \
         --python-version 3.11 --only-binary=:all: "${options[@]}" \
         --disable-pip-version-check --no-input --progress-bar off >"$folder.log" 2>&1; then
      tail -n 15 "$folder.log" >&2
      rm -rf "$partial"
      refuse 1 "error: $what could not be fetched" \
        "  hint: the whole output is in $folder.log; the same command tries again"
    fi
    cat "$@" >"$partial/roux-pins.txt"
    rm -rf "$folder.old"
    if [ -e "$folder" ] || [ -L "$folder" ]; then mv "$folder" "$folder.old"; fi
    mv "$partial" "$folder"
    rm -rf "$folder.old" "$folder.log"
    has_wheels "$folder" "$@"
  ) 8>"$folder.lock"
}

# setup_verify: the pinned Python tools that tests/verify reads back with, in a virtual environment beside .deps.
setup_verify() {
  local venv pins=("$roux_root"/tests/verify/{requirements,constraints}.txt)
  venv=$(deps_place -verify "${pins[@]}")
  fetch_tools "$venv" "${pins[@]}" || return
  link_deps -verify "$venv"
}

# fetch_tools VENV REQUIREMENTS CONSTRAINTS
fetch_tools() {
  local venv=$1 pins=("${@:2}")
  has_wheels "$venv" "${pins[@]}" && return 0
  mkdir -p "$(dirname "$venv")"
  (
    flock -n 8 || { say "waiting for another process that fetches the tools to read back with"; flock 8; }
    has_wheels "$venv" "${pins[@]}" && exit 0
    say "fetching the tools that tests read back with (unpacked 1.1 GB) into $venv"
    rm -rf "$venv"
    if ! { /usr/bin/python3 -I -m venv "$venv" && "$venv/bin/python" -I -m pip install --no-compile \
           -r "${pins[0]}" -c "${pins[1]}" --disable-pip-version-check --no-input --progress-bar off; } \
         >"$venv.log" 2>&1; then
      tail -n 15 "$venv.log" >&2
      refuse 1 "error: the tools that tests read back with could not be fetched" \
        "  hint: the whole output is in $venv.log; the same command tries again"
    fi
    cat "${pins[@]}" >"$venv/roux-pins.txt"
    rm -f "$venv.log"
    has_wheels "$venv" "${pins[@]}"
  ) 8>"$venv.lock"
}

has_wheels() {
  local pins=$1/roux-pins.txt
  shift
  [ -f "$pins" ] && cmp -s <(cat "$@") <(head -c "$(cat "$@" | wc -c)" "$pins")
}

# Shows ninja's lines as progress: one line that changes on a terminal, one line per tenth elsewhere.
show_progress() {
  local line shown=-1 done total
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]] || continue
    case ${BASH_REMATCH[3]} in Re-checking* | "Hashing the sources") continue ;; esac  # in every build
    done=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if [ -t 2 ]; then
      printf '\r\033[Kroux: building %s/%s' "$done" "$total" >&2
      shown=$done
    elif [ $((done * 10 / total)) -gt "$shown" ]; then
      shown=$((done * 10 / total))
      say "building $done/$total"
    fi
  done
  if [ -t 2 ] && [ "$shown" != -1 ]; then printf '\r\033[K' >&2; fi
}

build_failed() {
  local log=$1 found hints=()
  found=$(grep -A25 -m3 -E '^FAILED:|CMake Error|error:|warning:' "$log") || found=$(tail -n 25 "$log")
  cut -c1-400 <<<"$found" | sed -n '1,60p' >&2
  # components::lr_scheduler::cosine::make: its schema is there, and nothing defines it.
  local make='undefined reference to `(components::|trackers::)([a-z_]+::)*([a-z0-9_]+)::make\('
  if [[ $(<"$log") =~ $make ]]; then
    hints=("  hint: no .cpp file defines ${BASH_REMATCH[0]#*\`}...), which schemas/*/${BASH_REMATCH[3]}.json declares")
  fi
  refuse 1 "error: the build failed" "${hints[@]}" "  hint: the whole output is in $log"
}

# Without a core's worth of memory each, the compilers of the torch layers would swap.
build_jobs() {
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  [ "$gigabytes" -ge 1 ] || gigabytes=1
  echo $((cores < gigabytes ? cores : gigabytes))
}

# setup_build TARGET...
setup_build() {
  [ "${ROUX_SKIP_BUILD:-}" != 1 ] || return 0
  mkdir -p "$roux_build" 2>/dev/null || true
  if [ ! -w "$roux_build" ]; then  # another user's checkout: only use what is built there
    [ -x "$roux_build/bin/roux" ] || refuse 1 "error: $roux_build cannot be written, and nothing is built there"
    return 0
  fi
  (
    flock -n 9 || { say "waiting for another build in $roux_build"; flock 9; }
    local cache=$roux_build/CMakeCache.txt log=$roux_build/build.log home
    home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache" 2>/dev/null || true)
    [ -z "$home" ] || [ "$home" = "$roux_root" ] || rm -rf "$cache" "$roux_build/CMakeFiles"  # the checkout was moved
    local deps
    deps=ROUX_DEPS:PATH=$(realpath -ms "${ROUX_DEPS:-$roux_root/.deps}")
    # CI proves what a fresh clone would build: which sources use LibTorch is settled when CMake runs.
    if [ -n "${CI:-}" ] || [ ! -f "$roux_build/build.ninja" ] || ! grep -qsxF "$deps" "$cache"; then
      say "configuring ($roux_preset)"
      (cd "$roux_root" && cmake --preset "$roux_preset" "-D$deps") >"$log" 2>&1 || build_failed "$log"
    fi
    ninja -C "$roux_build" -j "$(build_jobs)" "$@" 2>&1 | tee "$log" | show_progress || build_failed "$log"
    # Warnings, those that the compiler cache repeats too. Without its log ninja runs all commands again, so that the
    # next build finds them as well.
    if [ -n "${CI:-}" ] && grep -qE '^[^ ]+:[0-9]+:[0-9]+: warning: ' "$log"; then
      rm -f "$roux_build/.ninja_log"
      build_failed "$log"
    fi
  ) 9>"$roux_build/.lock"
}
