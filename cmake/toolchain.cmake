# Flags of this build alone; nothing here is handed on to users of the library.
#
# The plain tree has the libraries and programs that users get, by the tree's own compiler (g++), optimised. Its tests are compiled by
# clang without optimisation, which takes two fifths of g++'s time (docs/performance.md), and link those libraries: as a user's program
# may that has another compiler than Debian's package had. A sanitizer's tree has clang alone.
if(SLUICE_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")  # half the time to compile, and that is most of what such a tree takes
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

# Assertions that cost nothing (assert(), of ours and of the headers that are bought) are on in what users get, which is what is tested;
# those that cost (each access to a vector is checked) in the sanitizers' trees.
if(SLUICE_ASSERTIONS STREQUAL "none")
  add_compile_definitions(NDEBUG)
elseif(SLUICE_ASSERTIONS STREQUAL "all")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  # Precompiled headers are allowed, and one cache serves every checkout of the repository, wherever it lies.
  set(cached env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${cached} ${SLUICE_CCACHE})
endif()

# Where clang is missing, g++ compiles the tests, too.
if(SLUICE_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(SLUICE_CLANG clang++-19)
endif()

# sluice_by_clang(TARGET): clang compiles TARGET in the tree of another compiler.
function(sluice_by_clang target)
  if(SLUICE_CLANG)
    set_target_properties(${target} PROPERTIES SLUICE_BY_CLANG ON
      CXX_COMPILER_LAUNCHER "${cached};${PROJECT_SOURCE_DIR}/scripts/by_clang;${SLUICE_CLANG}")
  endif()
endfunction()
set(by_clang $<OR:$<CXX_COMPILER_ID:Clang>,$<BOOL:$<TARGET_PROPERTY:SLUICE_BY_CLANG>>>)
set(by_gcc $<AND:$<CXX_COMPILER_ID:GNU>,$<NOT:$<BOOL:$<TARGET_PROPERTY:SLUICE_BY_CLANG>>>>)

find_program(SLUICE_MOLD mold)
if(SLUICE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Woverloaded-virtual -Wimplicit-fallthrough $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
  # g++ 12 reports false positives of these inside the standard library and coroutine frames
  $<${by_gcc}:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overread
    -Wno-stringop-overflow -Wno-array-bounds -Wno-dangling-pointer -Wno-free-nonheap-object
    -Wno-mismatched-new-delete -Wno-missing-field-initializers>
  # clang sees std::get_temporary_buffer, deprecated, inside libstdc++'s own stable_sort
  $<${by_clang}:-Wno-missing-designated-field-initializers -Wno-missing-field-initializers
    -Wno-deprecated-declarations>)

# g++ collects no garbage before it has half a gigabyte of it: 4 % less time, and a quarter more memory.
add_compile_options("$<${by_gcc}:SHELL:--param ggc-min-heapsize=524288>")

# What ccache needs where a precompiled header is used: the preprocessor tells of it, and it has no time in it. What the header
# makes of templates is made once, with it: an eighth of the time of clang, for which CMake says so by itself where it is the tree's
# compiler.
add_compile_options($<${by_gcc}:-fpch-preprocess>
  "$<${by_clang}:SHELL:-Xclang -fno-pch-timestamp -fpch-instantiate-templates>")

# Several files of a target are compiled as one, which takes half the time. CONTRIBUTING.md says how each is compiled alone, which
# finds what a file does not include, and shadows.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
# g++ takes a file that another includes for a header, whose types should not hold what is anonymous.
target_compile_options(sluice_flags INTERFACE
  $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<${by_gcc}:-Wno-subobject-linkage>,-Wshadow>)

if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()
