# sluice_embed_lua(TARGET folder/name.lua ...)   (paths relative to src/)
#   Each script becomes `sluice::scripts::<folder>_<name>`, a `const Script` with its text and SHA-1,
#   declared in "<folder>/<name>.lua.hpp". A line `-- include folder/other.lua` stands for that file's text.
function(sluice_embed_lua target)
  foreach(script IN LISTS ARGN)
    set(source ${PROJECT_SOURCE_DIR}/src/${script})
    set(header ${PROJECT_BINARY_DIR}/generated/${script}.hpp)
    file(STRINGS ${source} includes REGEX "^-- include ")
    list(TRANSFORM includes REPLACE "^-- include (.*)$" "${PROJECT_SOURCE_DIR}/src/\\1")
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DSCRIPT=${script} -DROOT=${PROJECT_SOURCE_DIR}/src -DHEADER=${header}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      DEPENDS ${source} ${includes} ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      COMMENT "Embedding ${script}")
    target_sources(${target} PRIVATE ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})  # its includes may change
  endforeach()
endfunction()
