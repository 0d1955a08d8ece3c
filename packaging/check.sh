#!/usr/bin/env bash
# check.sh PREFIX FOLDER...: looks at every ELF file of a package. None names one of the folders, looks for libraries in
# an empty or absolute path, or needs a newer glibc than Debian 12's; each library of others is in the table of
# NOTICE-third-party, and its notice follows there. Prints what is wrong; the exit status is 1 then.
set -euo pipefail
glibc_max=2.36 libstdcxx_max=3.4.30
prefix=$1
shift
notice=$prefix/share/doc/roux/NOTICE-third-party
bad=0 looked=0
wrong() { echo "packaging/check.sh: error: ${file#"$prefix"/} $*" >&2; bad=1; }

# newest SYMBOLS MAX: the newest version of the symbols, where it is above MAX.
newest() {
  local found
  found=$(sed -nE "s/.*\b($1_[0-9.]+).*/\1/p" <<<"$symbols" | sort -uV | tail -n 1)
  [ "$(printf '%s\n' "$1_$2" ${found:+"$found"} | sort -V | tail -n 1)" = "$1_$2" ] || echo "$found"
}

while IFS= read -r file; do
  [ "$(head -c 4 "$file" | tail -c 3 | tr -d '\0')" = ELF ] || continue
  looked=$((looked + 1))
  symbols=$(objdump -T "$file" 2>&1) || wrong "cannot be read: $symbols"
  dynamic=$(readelf -d "$file" 2>&1) || wrong "cannot be read: $dynamic"
  for folder in "$@"; do
    if LC_ALL=C grep -qaF -- "$folder/" "$file"; then wrong "names $folder"; fi
  done
  while IFS= read -r path; do
    while IFS= read -r -d : folder; do
      case $folder in
        '$ORIGIN' | '$ORIGIN'/*) ;;
        *) wrong "looks for libraries in \"$folder\"" ;;
      esac
    done <<<"$path:"
  done < <(sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]$/\2/p' <<<"$dynamic")
  above=$(newest GLIBC $glibc_max)
  [ -z "$above" ] || wrong "needs $above, and $glibc_max is Debian 12's"
  above=$(newest GLIBCXX $libstdcxx_max)
  [ -z "$above" ] || wrong "needs $above, and $libstdcxx_max is Debian 12's"
  case ${file##*/} in
    roux | schema_gen | libroux_*) ;;
    *)
      owner=$(sed -n "s|^  ${file##*/}  *||p" "$notice" | head -n 1)
      if [ -z "$owner" ]; then
        wrong "is not in the table of NOTICE-third-party"
      elif ! grep -qxF -- "$owner" <(sed -n '/^=/{n;p}' "$notice" | sed 's/: .*//'); then
        wrong "belongs to $owner, which has no notice in NOTICE-third-party"
      fi
      ;;
  esac
done < <(find "$prefix" -type f)
[ $looked -ge 5 ] || { file=$prefix; wrong "has only $looked programs and libraries"; }
exit $bad
