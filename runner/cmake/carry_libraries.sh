#!/usr/bin/env bash
# carry_libraries.sh BUILD DEPS PREFIX [KIND]: copies the libraries that the built binaries need to PREFIX/lib, all but
# those of the C and C++ run time, and gathers the notices of whatever it carried.
#   anywhere      (default) LibTorch's, Arrow's and CUDA's libraries too
#   cpu           LibTorch and Arrow, and nothing of CUDA that training on the CPU can do without
#   wheel         none of them: pip installs them, Arrow's where they are asked for. The run time of C++ is the
#                 system's, as torch's is
#   beside-torch  none of them, for a machine whose Python has torch, of any system: with the run time of C++
set -euo pipefail
build=$1 deps=$2 prefix=$3 kind=${4:-anywhere}
notice=$prefix/share/doc/roux/NOTICE-third-party
mkdir -p "$prefix/lib" "$(dirname "$notice")"

binaries=()
for binary in "$build"/bin/roux "$build"/lib/libroux_*.so; do
  case $kind:$binary in cpu:*/libroux_cuda.so) continue ;; esac
  [ ! -e "$binary" ] || binaries+=("$binary")
done
deps_real=$(readlink -f "$deps")
arrow_real=$(readlink -m "$deps-arrow")
runtime='/(libc|libm|libdl|librt|libutil|libpthread|libresolv|ld-linux[^/]*|libroux_[a-z]*)\.so'
case $kind in
  beside-torch) ;;
  *) runtime+='|/(libstdc\+\+|libgcc_s)\.so' ;;
esac
case $kind in
  wheel | beside-torch) runtime+="|^$deps_real(-cuda)?/|^$arrow_real/|^$(realpath -ms "$deps")(-cuda|-arrow)?/" ;;
esac
needed=$(ldd "${binaries[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE "$runtime")

packages=(nlohmann-json3-dev libcli11-dev libeigen3-dev)  # headers only, so ldd does not see them
named() { echo "$1 $(dpkg-query -W -f='${Version}' "$1")"; }
table=''
for library in $needed; do
  install -m 644 "$library" "$prefix/lib/$(basename "$library")"
  file=$(readlink -f "$library")
  case $file in
    "$deps_real"/nvidia/* | "$(readlink -m "$deps-cuda")"/*) owner=$(basename "$file" | sed 's/[.]so.*//') ;;
    "$deps_real"/*) owner=torch ;;
    "$arrow_real"/*) owner=pyarrow ;;
    *)
      package=$(dpkg-query -S "*/$(basename "$file")" | sed 's/[:,].*//' | head -n 1)
      packages+=("$package")
      owner=$(named "$package")
      ;;
  esac
  # Of a wheel of PyPI, the name by which its notice begins.
  case $owner in
    torch) owner=$(basename "$(ls -d "$deps"/torch-*.dist-info)" .dist-info) ;;
    pyarrow) owner=$(basename "$(ls -d "$arrow_real"/pyarrow-*.dist-info)" .dist-info) ;;
    lib*\ *) ;;
    lib*)
      # Without CUDA's packages there is no second folder, which grep would count as a failure.
      records=$(find "$deps/" "$deps-cuda/" -maxdepth 2 -path '*/nvidia_*.dist-info/RECORD' 2>/dev/null || true)
      record=$(xargs -r -d '\n' grep -lF "/lib/$(basename "$file")," <<<"$records" | head -n 1 || true)
      [ -n "$record" ] || { echo "carry_libraries.sh: error: no package in $deps gives $file" >&2; exit 1; }
      owner=$(basename "${record%/RECORD}" .dist-info)
      ;;
  esac
  table+=$(printf '\n  %-28s %s' "$(basename "$library")" "$owner")
done

title() { printf '\n%s\n%s\n%s\n\n' "${1//?/=}" "$1" "${1//?/=}"; }
{
  echo "roux is licensed under Apache-2.0 (see LICENSE and NOTICE). This installation also carries the work of others:"
  echo "below are their notices and licences. What is in lib/ belongs to:"
  echo "$table"
  printf '\nand of these only headers were compiled:\n\n'
  for package in "${packages[@]:0:3}"; do echo "  $(named "$package")"; done
  if [ -d "$deps/torch" ]; then
    for text in "$deps"/torch-*.dist-info/licenses/* "$deps"{,-cuda}/nvidia_*.dist-info/licenses/* \
                "$arrow_real"/pyarrow-*.dist-info/licenses/*; do
      [ -f "$text" ] || continue
      folder=${text%.dist-info/*}
      title "$(basename "$folder"): $(basename "$text")"
      cat "$text"
    done
  fi
  for package in $(printf '%s\n' "${packages[@]}" | sort -u); do
    [ -f "/usr/share/doc/$package/copyright" ] || continue
    title "$(named "$package")"
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
