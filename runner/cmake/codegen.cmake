# schemas/ -> generated/: config structs, parsers, tables, the editors' schema and the reference pages. schema_gen
# writes a file only when it changes, so a new description does not recompile the world.
function(add_codegen)
  file(GLOB generator_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/schemas/gen/*.cpp")
  if(NOT generator_sources)
    set(generator_sources "${ROUX_NO_MAIN}")
  endif()
  add_executable(schema_gen ${generator_sources})
  target_include_directories(schema_gen PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(schema_gen PRIVATE roux_layer_core roux_layer_recipe roux_layer_registry
    third_party_spdlog third_party_nlohmann third_party_yaml-cpp third_party_jsonnet third_party_re2
    third_party_png Threads::Threads ${CMAKE_DL_LIBS})

  set(out "${CMAKE_BINARY_DIR}/generated")
  set(base "${out}/base/fragments.cpp" "${out}/base/configs_section.cpp")
  set(engine "")
  set(program "")
  file(READ "${CMAKE_SOURCE_DIR}/schemas/kinds.json" kinds)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/schemas/kinds.json")
  string(JSON count LENGTH "${kinds}")
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON kind GET "${kinds}" ${i} kind)
    string(JSON layer GET "${kinds}" ${i} layer)
    list(APPEND base "${out}/base/configs_${kind}.cpp")
    if(layer STREQUAL "engine")
      list(APPEND engine "${out}/engine/make_${kind}.cpp")
    elseif(layer STREQUAL "base")
      list(APPEND base "${out}/base/make_${kind}.cpp")
    else()
      list(APPEND program "${out}/roux/make_${kind}.cpp")
    endif()
  endforeach()

  file(GLOB_RECURSE fragments CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/schemas/*.json")
  list(FILTER fragments EXCLUDE REGEX "/schemas/(recipe\\.schema\\.json|reference/|words/)")
  # The headers are named too, so that whoever includes one waits for its new text in the same build.
  set(headers "")
  foreach(fragment ${fragments})
    file(RELATIVE_PATH relative "${CMAKE_SOURCE_DIR}/schemas" "${fragment}")
    if(relative MATCHES "^([a-z_]+/[a-z0-9_]+)\\.json$")
      list(APPEND headers "${out}/${CMAKE_MATCH_1}.h")
    endif()
  endforeach()
  # The list is an input too, so that a fragment that is removed is noticed.
  file(CONFIGURE OUTPUT "${out}/fragments.txt" CONTENT "${fragments}\n" @ONLY)
  add_custom_command(
    OUTPUT "${out}/stamp"
    BYPRODUCTS ${base} ${engine} ${program} ${headers}
    COMMAND schema_gen --schemas "${CMAKE_SOURCE_DIR}/schemas" --out "${out}"
    COMMAND ${CMAKE_COMMAND} -E touch "${out}/stamp"
    DEPENDS schema_gen ${fragments} "${out}/fragments.txt"
    COMMENT "schemas -> generated"
    VERBATIM)
  add_custom_target(generate DEPENDS "${out}/stamp")
  set_source_files_properties(${base} ${engine} ${program} PROPERTIES GENERATED TRUE)
  set(ROUX_GENERATED_BASE ${base} PARENT_SCOPE)
  set(ROUX_GENERATED_ENGINE ${engine} PARENT_SCOPE)
  set(ROUX_GENERATED_PROGRAM ${program} PARENT_SCOPE)
endfunction()
