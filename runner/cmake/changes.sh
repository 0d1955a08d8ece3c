# Sourced by clang_tidy.sh and tests/run, within the repository.

# commit_to_compare BASE: where HEAD left BASE, or main where there is no BASE; on BASE itself the commit before. Prints
# nothing when there is none.
commit_to_compare() {
  local base=$1 since
  git rev-parse -q --verify "$base^{commit}" >/dev/null || base=main
  since=$(git merge-base HEAD "$base" 2>/dev/null || git rev-parse HEAD)
  [ "$since" != "$(git rev-parse HEAD)" ] || since=HEAD~1
  git rev-parse -q --verify "$since^{commit}" || true
}
