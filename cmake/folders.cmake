# How some targets are compiled; each kind has precompiled headers of its own (precompiled.cmake).
set(sluice_small_options)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(sluice_small_options -Os)
endif()
set(sluice_fuzzed_options -Og -fsanitize=fuzzer-no-link)

# sluice_folder(NAME [SMALL] [FUZZED] SOURCES a.cpp ... LIBS sluice_base ...)
#   One static library for each folder of src/. `sluice` bundles the folders that users link.
#   SMALL: a release is compiled for size, which halves the code and takes a seventh less time: for what waits on a server, a disk
#   or a person.
#   FUZZED: a tree with libFuzzer has the fuzzer's counters in it, and optimises it: it runs many thousand times a second.
function(sluice_folder name)
  cmake_parse_arguments(ARG "SMALL;FUZZED" "" "SOURCES;LIBS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sluice_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:sluice_flags>)
  # Of a static library a program links what it calls, function by function (libraries.cmake says so to its linker).
  if(CMAKE_BUILD_TYPE MATCHES "Rel")
    target_compile_options(sluice_${name} PRIVATE -ffunction-sections -fdata-sections)
  endif()
  set(kind libraries)
  if(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(sluice_${name} PRIVATE ${sluice_small_options})
    set(kind small_libraries)
  elseif(ARG_FUZZED AND SLUICE_FUZZ)
    target_compile_options(sluice_${name} PRIVATE ${sluice_fuzzed_options})
    set(kind fuzzed_libraries)
  endif()
  sluice_precompile(sluice_${name} ${kind})
endfunction()
