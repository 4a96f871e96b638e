# How some targets are compiled.
set(sluice_calm_options)
set(sluice_small_options)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(sluice_calm_options -O1)
  set(sluice_small_options -Os)
endif()
set(sluice_fuzzed_options -Og -fsanitize=fuzzer-no-link)

# sluice_folder(NAME [CALM | SMALL] [FUZZED] SOURCES a.cpp ... LIBS sluice_base ...)
#   One static library for each folder of src/. `sluice` bundles the folders that users link.
#   CALM: a release optimises it less, which takes a sixth less time: for what waits on a disk or a person.
#   SMALL: a release is compiled for size, which halves the code: for what many programs link and what waits on a server.
#   FUZZED: a tree with libFuzzer has the fuzzer's counters in it, and optimises it: it runs many thousand times a second.
function(sluice_folder name)
  cmake_parse_arguments(ARG "CALM;SMALL;FUZZED" "" "SOURCES;LIBS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sluice_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:sluice_flags>)
  # Of a static library a program links what it calls, function by function (libraries.cmake says so to its linker).
  if(CMAKE_BUILD_TYPE MATCHES "Rel")
    target_compile_options(sluice_${name} PRIVATE -ffunction-sections -fdata-sections)
  endif()
  set(kind libraries)
  if(ARG_CALM)
    target_compile_options(sluice_${name} PRIVATE ${sluice_calm_options})
  endif()
  if(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(sluice_${name} PRIVATE ${sluice_small_options})
    set(kind small_libraries)
  elseif(ARG_FUZZED AND SLUICE_FUZZ)
    target_compile_options(sluice_${name} PRIVATE ${sluice_fuzzed_options})
    set(kind fuzzed_libraries)
  endif()
  sluice_precompile(sluice_${name} ${kind})
endfunction()

# sluice_program(TARGET NAME SOURCES a.cpp ... LIBS sluice_base ...)
#   The program NAME in the build folder, beside the others. It waits for a person: CALM.
function(sluice_program target name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:sluice_flags>)
  target_compile_definitions(${target} PRIVATE SLUICE_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE ${sluice_calm_options})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  sluice_precompile(${target})
endfunction()
