# How some folders are compiled; each kind has precompiled headers of its own (precompiled.cmake).
set(sluice_small_options -Os)
set(sluice_fuzzed_options -Og -fsanitize=fuzzer-no-link)

# sluice_folder(NAME [SMALL] [FUZZED] SOURCES a.cpp ... LIBS sluice_base ...)
#   One static library for each folder of src/. `sluice` bundles the folders that users link.
#   SMALL: a release is compiled for size, which halves the code: for what waits on a server or a disk.
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

# sluice_test(NAME SOURCES ... LIBS ... [THREADS_IN file ...|none] [NEEDS program ...] [TOGETHER label=filter ...]
#             [PLAIN filter ...] [ONE_THREAD filter ...] [SERIAL] [TREES_IN_TURN] [TIMEOUT s] [COST s])
#   One GoogleTest program; every case becomes a CTest test of its own, "<tree>/<program>:<suite>.<case>".
#   TOGETHER: cases that match the filter run in one process, as the test "<tree>/<program>:<label>": for those that share what
#   takes long to start. A failed one is named by GoogleTest's own summary.
#   THREADS_IN: those of the sources whose cases have more than one thread at a time. ThreadSanitizer's tree is built of these
#   alone: in the others it would find nothing. `none`: it leaves the program out.
#   PLAIN: cases that the plain tree alone runs. What they show, a sanitizer does not change: a chance, a cost, what another
#   program does, how long servers take. ONE_THREAD: the same of ThreadSanitizer's tree.
#   NEEDS: programs that it starts. SERIAL: nothing else runs meanwhile. TREES_IN_TURN: not beside the same program of another
#   tree: three clusters at once starve each other for a second, and their masters are voted out. COST: what its longest case
#   takes: the long ones begin first, so that no core is idle at the end. The target `tests` builds every program.
function(sluice_test name)
  if(NOT SLUICE_TESTS)  # the benchmarks take tests/support alone
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL;TREES_IN_TURN" "TIMEOUT;COST" "SOURCES;THREADS_IN;LIBS;NEEDS;TOGETHER;PLAIN;ONE_THREAD" ${ARGN})
  if(DEFINED ARG_THREADS_IN AND SLUICE_SANITIZE STREQUAL thread)
    if(ARG_THREADS_IN STREQUAL none)
      return()
    endif()
    set(ARG_SOURCES ${ARG_THREADS_IN})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} sluice_test_support GTest::gtest_main
                        $<BUILD_INTERFACE:sluice_flags>)
  sluice_precompile(${name} tests)
  add_dependencies(tests ${name})
  if(ARG_NEEDS)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_COST)
    list(APPEND properties COST ${ARG_COST})
  endif()
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  if(ARG_TREES_IN_TURN)
    list(APPEND properties RESOURCE_LOCK ${name})
  endif()
  set(apart)  # from those that are tests of their own
  foreach(group IN LISTS ARG_TOGETHER)
    string(REGEX MATCH "^([^=]+)=(.+)$" group ${group})
    set(test ${SLUICE_TREE}${name}:${CMAKE_MATCH_1})
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1 "--gtest_filter=${CMAKE_MATCH_2}")
    set_tests_properties(${test} PROPERTIES ${properties})
    list(APPEND apart ${CMAKE_MATCH_2})
  endforeach()
  if(SLUICE_SANITIZE)
    list(APPEND apart ${ARG_PLAIN})
  endif()
  if(SLUICE_SANITIZE STREQUAL thread)
    list(APPEND apart ${ARG_ONE_THREAD})
  endif()
  list(JOIN apart : apart)
  gtest_discover_tests(${name} TEST_PREFIX ${SLUICE_TREE}${name}: DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_FILTER "*-${apart}" PROPERTIES ${properties})
endfunction()

# sluice_fuzz(NAME SOURCES ... LIBS ... CORPUS folder [DICTIONARY file] [OPTIONS of libFuzzer ...])
#   A target of libFuzzer: the program NAME_replay_test tries the corpus of the repository once, by one thread, so that what it
#   has taught stays learned. Where SLUICE_FUZZ is on, the program NAME_fuzz goes on from there for some seconds, as the test
#   fuzz/NAME_fuzz; what it finds goes to the build tree. Paths are relative to the folder that calls.
function(sluice_fuzz name)
  if(SLUICE_SANITIZE STREQUAL thread)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS;DICTIONARY" "SOURCES;LIBS;OPTIONS" ${ARGN})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  add_executable(${name}_replay_test ${ARG_SOURCES} $<TARGET_OBJECTS:sluice_replay>)
  set(programs ${name}_replay_test)
  add_test(NAME ${SLUICE_TREE}${name}_replay_test COMMAND ${name}_replay_test ${corpus})
  if(SLUICE_FUZZ)
    add_executable(${name}_fuzz ${ARG_SOURCES})
    list(APPEND programs ${name}_fuzz)
    target_compile_options(${name}_fuzz PRIVATE ${sluice_fuzzed_options})
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    set(found ${CMAKE_CURRENT_BINARY_DIR}/${name}_fuzz.found)
    file(MAKE_DIRECTORY ${found})
    set(arguments -max_total_time=${SLUICE_FUZZ_SECONDS} -timeout=25 -rss_limit_mb=2048 -print_final_stats=1
        -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}_fuzz. ${ARG_OPTIONS})
    if(ARG_DICTIONARY)
      list(APPEND arguments -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICTIONARY})
    endif()
    add_test(NAME fuzz/${name}_fuzz COMMAND ${name}_fuzz ${arguments} ${found} ${corpus})
    math(EXPR limit "${SLUICE_FUZZ_SECONDS} + 60")
    set_tests_properties(fuzz/${name}_fuzz PROPERTIES TIMEOUT ${limit} COST ${SLUICE_FUZZ_SECONDS})
  endif()
  foreach(program IN LISTS programs)
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${program} PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:sluice_flags>)
    add_dependencies(tests ${program})
  endforeach()
endfunction()
