# Run by every build: a hash over the sources, defined in OUT, which is rewritten only when it changed.
#   cmake -DROOT=... -DOUT=... -DVERSION=... -DBUILD=... -P source_hash.cmake
file(GLOB_RECURSE sources RELATIVE "${ROOT}" "${ROOT}/runner/*.cpp" "${ROOT}/runner/*.h" "${ROOT}/components/*.cpp"
     "${ROOT}/components/*.h" "${ROOT}/trackers/*.cpp" "${ROOT}/trackers/*.h" "${ROOT}/schemas/*.json"
     "${ROOT}/schemas/*.cpp" "${ROOT}/runner/cmake/libtorch.txt" "${ROOT}/runner/cmake/toolchain.cmake")
list(FILTER sources EXCLUDE REGEX "schemas/recipe\\.schema\\.json$")
list(SORT sources)
set(all "")
foreach(source ${sources})
  file(SHA256 "${ROOT}/${source}" hash)
  string(APPEND all "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING "${hash}" 0 16 hash)
file(CONFIGURE OUTPUT "${OUT}" CONTENT "// Written by source_hash.cmake.
#include \"runner/core/build_info.h\"
namespace runner::core {
const char* program_version() { return \"${VERSION}\"; }
const char* program_build() { return \"${BUILD}\"; }
const char* source_hash() { return \"${hash}\"; }
}
" @ONLY)
