# Sourced by packaging/*/build: what the wheel and the archive share. ROUX_PRESET is wheel, a release build with GPU
# support, unless it is set; any preset with GPU support makes a package.
export ROUX_PRESET=${ROUX_PRESET:-wheel}
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../runner/cmake/setup.sh"
export ROUX_CUDA_LIBRARIES=link  # what compiling and linking need; a machine with a GPU has the rest

# package_build: builds everything that is packed, and sets deps and version.
package_build() {
  setup_packages build
  setup_libtorch
  setup_build roux roux_engine roux_arrow roux_cuda schema_gen
  deps=$(realpath -ms "${ROUX_DEPS:-$roux_root/.deps}")
  version=$(sed -n 's/^project(roux VERSION \([0-9.]*\).*/\1/p' "$roux_root/CMakeLists.txt")
}

# package_install PREFIX KIND: roux and the libraries of others that it needs, stripped. KIND is that of
# carry_libraries.sh.
package_install() {
  local component log=$1.log
  for component in program Unspecified; do
    cmake --install "$roux_build" --prefix "$1" --component $component --strip >"$log" 2>&1 ||
      refuse 1 "error: cmake cannot install what was built" "$(tail -n 5 "$log")"
  done
  [ "$2" != cpu ] || rm -f "$1/lib/libroux_cuda.so"
  bash "$roux_root/runner/cmake/carry_libraries.sh" "$roux_build" "$deps" "$1" "$2"
  find "$1/lib" -maxdepth 1 -name '*.so*' ! -name 'libtorch*' ! -name 'libc10*' -exec strip --strip-unneeded {} +
  rm -f "$log"
}

# package_check PREFIX: what every package has to hold. Only a release build leaves out where it was compiled.
package_check() {
  local folders=()
  if grep -qx 'CMAKE_BUILD_TYPE:.*=Release' "$roux_build/CMakeCache.txt"; then
    folders=("$roux_root" "$(readlink -f "$deps")")
  fi
  bash "$roux_root/packaging/check.sh" "$1" "${folders[@]}"
}

# limit_size FILE MEGABYTES
limit_size() {
  local bytes
  bytes=$(stat -c %s "$1")
  [ "$bytes" -lt $(($2 * 1000000)) ] || refuse 1 "error: $1 has $bytes bytes, and $2 MB is the limit"
  say "$1: $((bytes / 100000 / 10)).$((bytes / 100000 % 10)) MB"
}
