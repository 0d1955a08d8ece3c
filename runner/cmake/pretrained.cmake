# add_pretrained_tables(FOLDER): the JSON files of that folder as texts of the program, in ROUX_PRETRAINED_TABLES.
function(add_pretrained_tables folder)
  file(GLOB tables CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${folder}/*.json")
  set(texts "")
  foreach(table ${tables})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
    file(READ "${table}" text)
    string(APPEND texts "    R\"json(${text})json\",\n")
  endforeach()
  list(LENGTH tables count)
  set(base "${CMAKE_BINARY_DIR}/generated/base")
  file(CONFIGURE OUTPUT "${base}/pretrained_tables.cpp" CONTENT [[
#include "runner/pretrained/tables.h"

namespace runner::pretrained {
const std::string_view kTables[] = {
@texts@};
const std::size_t kTableCount = @count@;
}
]] @ONLY)
  set(ROUX_PRETRAINED_TABLES "${base}/pretrained_tables.cpp" PARENT_SCOPE)
endfunction()
