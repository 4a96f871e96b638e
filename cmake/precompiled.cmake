# sluice_precompile(TARGET [KIND])   KIND: libraries (if not said) or tests; small_ or fuzzed_ before libraries: sluice_folder()
#   The headers of the standard library and of fmt that nearly every file includes are compiled once: two fifths of the
#   time to build. They hide a missing #include of theirs: floors_test finds those. None of our own
#   headers: ccache tells a precompiled header by the one that it replaces, so a changed header may be answered by a stale one.
#   One serves libraries and programs, optimised by -O1 and by -O2: only -Os and -fPIE would each need another, 3 s to compile.
function(sluice_precompile target)
  set(kinds libraries ${ARGN})
  list(GET kinds -1 kind)
  set(owner sluice_precompiled_${kind})
  if(NOT TARGET ${owner})
    set(headers <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <coroutine> <cstdint> <deque>
        <functional> <list> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread>
        <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
    set(source ${PROJECT_BINARY_DIR}/generated/${owner}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${source})
    if(kind STREQUAL "tests")
      target_compile_options(${owner} PRIVATE ${sluice_test_options})
      sluice_by_clang(${owner})
      if(TARGET GTest::gtest)  # the benchmarks do without
        target_link_libraries(${owner} PRIVATE GTest::gtest)
        list(APPEND headers <filesystem> <fstream> <random> <gtest/gtest.h>)
      endif()
    endif()
    if(kind MATCHES "^(small|fuzzed)_")
      target_compile_options(${owner} PRIVATE ${sluice_${CMAKE_MATCH_1}_options})
    endif()
    target_link_libraries(${owner} PRIVATE fmt::fmt sluice_flags)
    target_precompile_headers(${owner} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${target} PRIVATE -fPIC)  # as the header is, in the place of -fPIE
  endif()
endfunction()
