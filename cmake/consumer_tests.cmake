# Installs this tree and builds tests/consumer against it, as a user does: with find_package(), against the shared and the
# static libraries, with pkg-config, and as a part of the user's own build.
# REQUIRES: the target `all` is built, as ./test does.
set(installed ${PROJECT_BINARY_DIR}/installed)
set(project ${PROJECT_SOURCE_DIR}/tests/consumer)

add_test(NAME ${SLUICE_TREE}consumer:install
  COMMAND sh -ec "rm -rf ${installed} && ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${installed}")
set_tests_properties(${SLUICE_TREE}consumer:install PROPERTIES FIXTURES_SETUP installed)

foreach(kind IN ITEMS shared static)
  set(name ${SLUICE_TREE}consumer:cmake_${kind})
  add_test(NAME ${name}
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${project} ${PROJECT_BINARY_DIR}/consumer-${kind}
            --build-generator ${CMAKE_GENERATOR} --build-project consumer
            --build-options -DCMAKE_PREFIX_PATH=${installed} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                            -Dsluice_USE_STATIC_LIBS=$<STREQUAL:${kind},static>
            --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure)
  list(APPEND consumer_tests ${name})
endforeach()

# Which flags and libraries a user sees is a part of this test: none that is ours alone.
set(out ${PROJECT_BINARY_DIR}/consumer-make)
add_test(NAME ${SLUICE_TREE}consumer:pkg-config
  COMMAND sh -ec "mkdir -p ${out} && rm -f ${out}/* && make -C ${project} OUT=${out} LIBDIR=${installed}/${CMAKE_INSTALL_LIBDIR}")
set_tests_properties(${SLUICE_TREE}consumer:pkg-config PROPERTIES
  ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER};PKG_CONFIG_PATH=${installed}/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
list(APPEND consumer_tests ${SLUICE_TREE}consumer:pkg-config)

# README.md's program, by README.md's commands.
add_test(NAME ${SLUICE_TREE}consumer:readme COMMAND sh ${project}/readme.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/consumer-readme)
set(libraries ${installed}/${CMAKE_INSTALL_LIBDIR})
set_tests_properties(${SLUICE_TREE}consumer:readme PROPERTIES
  ENVIRONMENT "CMAKE_PREFIX_PATH=${installed};PKG_CONFIG_PATH=${libraries}/pkgconfig;LD_LIBRARY_PATH=${libraries}")
list(APPEND consumer_tests ${SLUICE_TREE}consumer:readme)
set_tests_properties(${consumer_tests} PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 180)

# As a subproject it is configured, and its `all` is looked at: the libraries alone.
set(whole ${PROJECT_BINARY_DIR}/consumer-subproject)
add_test(NAME ${SLUICE_TREE}consumer:subproject
  COMMAND sh -ec "${CMAKE_COMMAND} -G Ninja -S ${project} -B ${whole} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} \
      -DCONSUMER_SUBPROJECT=${PROJECT_SOURCE_DIR} >${whole}.log
    ninja -C ${whole} -t inputs all | sed '\\|^${project}/|d; s|^${PROJECT_SOURCE_DIR}/||; s|^sluice/||' >${whole}.inputs
    grep -q '^src/lock/' ${whole}.inputs
    ! grep -E '^(src/(proxy|cli)|tests|bench)/' ${whole}.inputs")
set_tests_properties(${SLUICE_TREE}consumer:subproject PROPERTIES TIMEOUT 120)

# What ./run builds is configured, and looked at: what the demo needs and no more.
set(release ${PROJECT_BINARY_DIR}/consumer-release)
add_test(NAME ${SLUICE_TREE}consumer:release
  COMMAND sh -ec "cd ${PROJECT_SOURCE_DIR} && ${CMAKE_COMMAND} --preset release -B ${release}
    ninja -C ${release} -t inputs sluice_demo_program >${release}.inputs
    grep -q '^src/engine/' ${release}.inputs
    ! grep -E '^src/(bloom|cache|http|lock|loop|proxy|room|server|token|cli/(bench|doctor|load|proxy|serve))/' ${release}.inputs")
set_tests_properties(${SLUICE_TREE}consumer:release PROPERTIES TIMEOUT 120)

foreach(test IN LISTS consumer_tests ITEMS ${SLUICE_TREE}consumer:install ${SLUICE_TREE}consumer:subproject ${SLUICE_TREE}consumer:release)
  sluice_note_test(all TEST ${test})
endforeach()
