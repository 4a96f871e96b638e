# sluice_embed_file(TARGET folder/file ... INTO room)   (paths relative to the root; the room to src/)
#   Declares the text of each file in "<room>/<file>.hpp", as constant `sluice::files::<file>` ('.' and '-' become '_') of
#   type std::string_view. For what browsers get: style sheets and scripts.
function(sluice_embed_file target)
  cmake_parse_arguments(ARG "" "INTO" "" ${ARGN})
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(name ${file} NAME)
    set(source ${PROJECT_SOURCE_DIR}/${file})
    set(header ${PROJECT_BINARY_DIR}/generated/${ARG_INTO}/${name}.hpp)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DROOT=${PROJECT_SOURCE_DIR} -DHEADER=${header}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_file_text.cmake
      DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/embed_file_text.cmake
      COMMENT "Embedding ${file}")
    target_sources(${target} PRIVATE ${header})
  endforeach()
endfunction()
