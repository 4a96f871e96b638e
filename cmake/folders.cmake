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
#   One GoogleTest program; every case becomes a CTest test of its own.
function(sluice_test name)
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
  set(properties TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL ON)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}: DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
