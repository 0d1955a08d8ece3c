# find_package(roux): what the author of a plugin builds against.
#
# Include <roux/*.h>: one header for each kind of component, and core.h. What lies in roux/detail is theirs.
#
#   roux::base        libroux_base.so: the recipe's tree, diagnostics, errors, units
#   roux::engine      libroux_engine.so: what components share; brings no LibTorch headers, use those of its version
#   roux::schema_gen  fragments -> config structs, parsers, tables
#   ROUX_SCHEMAS      the folder of roux's own fragments and of the schema for editors
get_filename_component(ROUX_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ROUX_SCHEMAS "${ROUX_PREFIX}/share/roux/schemas")
foreach(name base engine)
  if(EXISTS "${ROUX_PREFIX}/lib/libroux_${name}.so" AND NOT TARGET roux::${name})
    add_library(roux::${name} SHARED IMPORTED)
    set_target_properties(roux::${name} PROPERTIES
      IMPORTED_LOCATION "${ROUX_PREFIX}/lib/libroux_${name}.so"
      IMPORTED_NO_SONAME OFF
      INTERFACE_INCLUDE_DIRECTORIES "${ROUX_PREFIX}/include;${ROUX_PREFIX}/include/roux/detail"
      INTERFACE_LINK_OPTIONS "-Wl,-rpath-link,${ROUX_PREFIX}/lib"
      INTERFACE_COMPILE_FEATURES cxx_std_20)
  endif()
endforeach()
if(TARGET roux::engine)
  set_property(TARGET roux::engine APPEND PROPERTY INTERFACE_LINK_LIBRARIES roux::base)
endif()
if(NOT TARGET roux::schema_gen)
  add_executable(roux::schema_gen IMPORTED)
  set_target_properties(roux::schema_gen PROPERTIES IMPORTED_LOCATION "${ROUX_PREFIX}/bin/schema_gen")
endif()
