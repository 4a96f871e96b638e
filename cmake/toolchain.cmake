# Flags of this build alone; nothing here is handed on to users of the library.
if(SLUICE_SANITIZE MATCHES "address")
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")  # half the time to compile, and that is most of what the tree takes
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-Og -g1")
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  # Precompiled headers are allowed, and one cache serves every checkout of the repository, wherever it lies.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${SLUICE_CCACHE})
endif()

find_program(SLUICE_MOLD mold)
if(SLUICE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Woverloaded-virtual -Wimplicit-fallthrough $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
  # g++ 12 reports false positives of these inside the standard library and coroutine frames
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overread
    -Wno-stringop-overflow -Wno-array-bounds -Wno-dangling-pointer -Wno-free-nonheap-object
    -Wno-mismatched-new-delete -Wno-missing-field-initializers>
  # clang sees std::get_temporary_buffer, deprecated, inside libstdc++'s own stable_sort
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers -Wno-missing-field-initializers
    -Wno-deprecated-declarations>)

# What ccache needs where a precompiled header is used: the preprocessor tells of it, and it has no time in it.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")

# Several files of a target are compiled as one, which takes half the time. CONTRIBUTING.md says how each is compiled alone, which
# finds what a file does not include, and shadows.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
# g++ takes a file that another includes for a header, whose types should not hold what is anonymous.
target_compile_options(sluice_flags INTERFACE
  $<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>,-Wshadow>)

if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  if(SLUICE_SANITIZE MATCHES "thread")
    add_compile_options(-Wno-tsan)
  endif()
endif()
