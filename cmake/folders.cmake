# sluice_folder(NAME SOURCES a.cpp ... LIBS sluice_base ...)
#   One static library for each folder of src/. `sluice` bundles the folders that users link.
function(sluice_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(sluice_${name} STATIC ${ARG_SOURCES})
  target_include_directories(sluice_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_LIBS} PRIVATE $<BUILD_INTERFACE:sluice_flags>)
endfunction()

# sluice_test(NAME SOURCES ... LIBS ... [SERIAL] [TIMEOUT s])
#   One GoogleTest program; every case becomes a CTest test of its own, "<tree>/<program>:<suite>.<case>".
#   SERIAL: nothing else runs meanwhile. The target `tests` builds every program.
function(sluice_test name)
  if(NOT SLUICE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} sluice_test_support GTest::gtest_main
                        $<BUILD_INTERFACE:sluice_flags>)
  target_compile_definitions(${name} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             SLUICE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_dependencies(tests ${name})
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${SLUICE_TREE}${name}: DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# sluice_fuzz(NAME SOURCES ... LIBS ... [CORPUS folder] [DICTIONARY file])
#   One libFuzzer program, built in the fuzz tree alone. As a test it runs for some seconds on the corpus of the
#   repository (paths relative to the folder that calls); what it finds goes to the build tree.
function(sluice_fuzz name)
  if(NOT SLUICE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS;DICTIONARY" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:sluice_flags>)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(tests ${name})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}.found)
  file(MAKE_DIRECTORY ${found})
  set(arguments -max_total_time=${SLUICE_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
      -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}.)
  if(ARG_DICTIONARY)
    list(APPEND arguments -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICTIONARY})
  endif()
  list(APPEND arguments ${found})
  if(ARG_CORPUS)
    list(APPEND arguments ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  endif()
  add_test(NAME ${SLUICE_TREE}${name} COMMAND ${name} ${arguments})
  math(EXPR limit "${SLUICE_FUZZ_SECONDS} + 60")
  set_tests_properties(${SLUICE_TREE}${name} PROPERTIES TIMEOUT ${limit})
endfunction()
