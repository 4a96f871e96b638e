# sluice_embed_lua(TARGET folder/name.lua ... [FROM folder])   (paths relative to src/, or to FROM)
#   Each script becomes `sluice::scripts::<folder>_<name>`, a `const Script` with its text and SHA-1,
#   declared in "<folder>/<name>.lua.hpp". A line `-- include folder/other.lua` stands for that file's text.
function(sluice_embed_lua target)
  cmake_parse_arguments(ARG "" "FROM" "" ${ARGN})
  if(NOT ARG_FROM)
    set(ARG_FROM ${PROJECT_SOURCE_DIR}/src)
  endif()
  foreach(script IN LISTS ARG_UNPARSED_ARGUMENTS)
    set(source ${ARG_FROM}/${script})
    set(header ${PROJECT_BINARY_DIR}/generated/${script}.hpp)
    file(STRINGS ${source} includes REGEX "^-- include ")
    list(TRANSFORM includes REPLACE "^-- include (.*)$" "${ARG_FROM}/\\1")
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DSCRIPT=${script} -DROOT=${ARG_FROM} -DHEADER=${header}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      DEPENDS ${source} ${includes} ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      COMMENT "Embedding ${script}")
    target_sources(${target} PRIVATE ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})  # its includes may change
  endforeach()
endfunction()
