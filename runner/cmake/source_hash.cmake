# Run by every build: a hash over the sources and what says how they are compiled, defined in OUT, which is rewritten
# only when it changed.
#   cmake -DROOT=... -DOUT=... -DVERSION=... -DBUILD=... -P source_hash.cmake
cmake_policy(SET CMP0009 NEW)  # links are not followed
file(GLOB sources RELATIVE "${ROOT}" "${ROOT}/CMakeLists.txt" "${ROOT}/runner/cmake/*.cmake"
     "${ROOT}/runner/cmake/libtorch.txt")
foreach(folder runner components trackers schemas)
  file(GLOB_RECURSE found RELATIVE "${ROOT}" "${ROOT}/${folder}/*.cpp" "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.inl"
       "${ROOT}/${folder}/*.json")
  list(APPEND sources ${found})
endforeach()
list(FILTER sources EXCLUDE REGEX "schemas/recipe\\.schema\\.json$")
list(REMOVE_DUPLICATES sources)
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
