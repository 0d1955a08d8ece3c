# add_json_tables(FOLDER LAYER): the JSON files of that folder as texts of the program, declared by
# runner/LAYER/tables.h; the source is in ROUX_LAYER_TABLES, with LAYER in upper case.
function(add_json_tables folder layer)
  file(GLOB tables CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.json")
  set(texts "")
  foreach(table ${tables})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
    file(READ "${table}" text)
    string(APPEND texts "    R\"json(${text})json\",\n")
  endforeach()
  list(LENGTH tables count)
  set(source "${CMAKE_BINARY_DIR}/generated/base/${layer}_tables.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT [[
#include "runner/@layer@/tables.h"

namespace runner::@layer@ {
const std::string_view kTables[] = {
@texts@};
const std::size_t kTableCount = @count@;
}
]] @ONLY)
  string(TOUPPER "${layer}" upper)
  set(ROUX_${upper}_TABLES "${source}" PARENT_SCOPE)
endfunction()
