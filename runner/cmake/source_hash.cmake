# Run by every build: a hash over the sources and what says how they are compiled, defined in OUT, which is rewritten
# only when it changed.
#   cmake -DROOT=... -DOUT=... -DVERSION=... -DBUILD=... -P source_hash.cmake
set(patterns CMakeLists.txt runner/cmake/*.cmake runner/cmake/libtorch.txt schemas/*.json)
foreach(folder runner components trackers schemas)
  list(APPEND patterns ${folder}/*.cpp ${folder}/*.h ${folder}/*.inl)
endforeach()
list(TRANSFORM patterns PREPEND "${ROOT}/")
file(GLOB_RECURSE sources RELATIVE "${ROOT}" ${patterns})
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
