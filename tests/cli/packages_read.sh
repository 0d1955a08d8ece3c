#!/usr/bin/env bash
# packaging/check.sh lets an installation of the libraries pass, and finds each fault that a package may have.
set -euo pipefail
source_tree=$1 build=$2
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
check() { bash "$source_tree/packaging/check.sh" "$@"; }
prefix=$work/package
deps=$(sed -n 's/^ROUX_DEPS:PATH=//p' "$build/CMakeCache.txt")
cmake --install "$build" --prefix "$prefix" --component program --strip >/dev/null
bash "$source_tree/runner/cmake/carry_libraries.sh" "$build" "$deps" "$prefix" wheel
check "$prefix" || { echo "error: a right package is refused"; exit 1; }
if compgen -G "$prefix/lib/libtorch*"; then echo "error: LibTorch is in a package for a wheel"; exit 1; fi

# finds TEXT [FOLDER]: what check.sh says of the package with an additional library. Our own are large to read.
rm "$prefix"/bin/* "$prefix"/lib/libroux_*
library() {
  echo "const char* $1() { return \"$2\"; }" >"$work/a.c"
  gcc -shared -o "$prefix/lib/libroux_new.so" "$work/a.c" "${@:3}"
}
finds() {
  if check "$prefix" "${@:2}" 2>"$work/said" || ! grep -qF -- "$1" "$work/said"; then
    cat "$work/said"
    echo "tests/cli/packages_read.sh: error: it should have found: $1"
    exit 1
  fi
}
library at "$work/tree/a.cpp"
finds "lib/libroux_new.so names $work/tree" "$work/tree"
library plain a -Wl,-rpath,/opt/lib
finds 'lib/libroux_new.so looks for libraries in "/opt/lib"'
library plain a '-Wl,-rpath,$ORIGIN:'
finds 'lib/libroux_new.so looks for libraries in ""'
for version in GLIBC_2.37 GLIBCXX_3.4.31; do
  echo "$version { plain; };" >"$work/versions"
  library plain a "-Wl,--version-script=$work/versions"
  finds "lib/libroux_new.so needs $version"
done
printf '\177ELF and nothing else' >"$prefix/lib/libroux_new.so"
finds "lib/libroux_new.so cannot be read"
library plain a '-Wl,-rpath,$ORIGIN/../lib'
check "$prefix"
mv "$prefix/lib/libroux_new.so" "$prefix/lib/libforeign.so"
finds "lib/libforeign.so is not in the table of NOTICE-third-party"
rm "$prefix/lib/libforeign.so"
sed -i '/^libyaml-cpp/d' "$prefix/share/doc/roux/NOTICE-third-party"
finds "libyaml-cpp0.7"
echo "packages are read, and each fault is found"
