# sluice_embed_lua(TARGET folder/name.lua ...)   (paths relative to src/)
#   Each script becomes `sluice::scripts::<folder>_<name>`, a `const Script` with its text and SHA-1,
#   declared in "<folder>/<name>.lua.hpp".
function(sluice_embed_lua target)
  foreach(script IN LISTS ARGN)
    set(source ${PROJECT_SOURCE_DIR}/src/${script})
    set(header ${PROJECT_BINARY_DIR}/generated/${script}.hpp)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DSCRIPT=${script} -DSOURCE=${source} -DHEADER=${header}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_lua_script.cmake
      COMMENT "Embedding ${script}")
    target_sources(${target} PRIVATE ${header})
  endforeach()
endfunction()
