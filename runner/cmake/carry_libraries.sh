#!/usr/bin/env bash
# carry_libraries.sh BUILD DEPS PREFIX [beside-torch]: copies the libraries that the built binaries need to PREFIX/lib,
# all but those of the C and C++ run time, and gathers the notices of whatever it carried. With beside-torch, for a
# machine whose Python has torch: LibTorch and CUDA stay here, the run time of C++ comes along.
set -euo pipefail
build=$1 deps=$2 prefix=$3 place=${4:-anywhere}
notice=$prefix/share/doc/roux/NOTICE-third-party
mkdir -p "$prefix/lib" "$(dirname "$notice")"

binaries=()
for binary in "$build"/bin/roux "$build"/lib/libroux_*.so; do [ ! -e "$binary" ] || binaries+=("$binary"); done
runtime='/(libc|libm|libdl|librt|libutil|libpthread|libresolv|libstdc\+\+|libgcc_s|ld-linux[^/]*|libroux_[a-z]*)\.so'
deps_real=$(readlink -f "$deps")
if [ "$place" = beside-torch ]; then
  runtime='/(libc|libm|libdl|librt|libutil|libpthread|libresolv|ld-linux[^/]*|libroux_[a-z]*)\.so'
  runtime+="|^$deps_real(-cuda)?/|^$(realpath -ms "$deps")(-cuda)?/"
fi
needed=$(ldd "${binaries[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE "$runtime")

packages=(nlohmann-json3-dev libcli11-dev libeigen3-dev)  # headers only, so ldd does not see them
for library in $needed; do
  install -m 644 "$library" "$prefix/lib/$(basename "$library")"
  file=$(readlink -f "$library")
  case $file in
    "$(readlink -f "$deps")"/* | "$(readlink -m "$deps-cuda")"/*) ;;
    *) packages+=("$(dpkg-query -S "*/$(basename "$file")" | sed 's/[:,].*//' | head -n 1)") ;;
  esac
done

title() { printf '\n%s\n%s\n%s\n\n' "${1//?/=}" "$1" "${1//?/=}"; }
{
  echo "roux is licensed under Apache-2.0 (see LICENSE and NOTICE). This installation also carries the work of others:"
  echo "below are their notices and licences."
  if [ -d "$deps/torch" ]; then
    for text in "$deps"/torch-*.dist-info/licenses/* "$deps"{,-cuda}/nvidia_*.dist-info/licenses/*; do
      [ -f "$text" ] || continue
      folder=${text%.dist-info/*}
      title "$(basename "$folder"): $(basename "$text")"
      cat "$text"
    done
  fi
  for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
    [ -f "/usr/share/doc/$package/copyright" ] || continue
    title "$package $(dpkg-query -W -f='${Version}' "$package")"
    cat "/usr/share/doc/$package/copyright"
  done
} >"$notice.partial"
# Debian's notices refer to licences by their place on a Debian machine; here the texts follow.
{
  cat "$notice.partial"
  for licence in $(grep -aoE '/usr/share/common-licenses/[A-Za-z]+(-[0-9.]*[0-9])?' "$notice.partial" | sort -u); do
    [ -f "$licence" ] || continue
    title "$(basename "$licence")"
    cat "$licence"
  done
} >"$notice"
rm -f "$notice.partial"
