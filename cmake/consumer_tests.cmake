# Installs this tree and builds tests/consumer against it, as a user does: with find_package(), and with pkg-config.
# REQUIRES: all targets are built, as ./test does in the plain tree.
set(installed ${PROJECT_BINARY_DIR}/installed)
set(project ${PROJECT_SOURCE_DIR}/tests/consumer)

add_test(NAME ${SLUICE_TREE}consumer:install
  COMMAND sh -ec "rm -rf ${installed} && ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${installed}")
set_tests_properties(${SLUICE_TREE}consumer:install PROPERTIES FIXTURES_SETUP installed)

add_test(NAME ${SLUICE_TREE}consumer:cmake
  COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${project} ${PROJECT_BINARY_DIR}/consumer
          --build-generator ${CMAKE_GENERATOR} --build-project consumer
          --build-options -DCMAKE_PREFIX_PATH=${installed} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
          --test-command ${CMAKE_CTEST_COMMAND} --output-on-failure)

set(out ${PROJECT_BINARY_DIR}/consumer-make)
add_test(NAME ${SLUICE_TREE}consumer:pkg-config
  COMMAND sh -ec "mkdir -p ${out} && rm -f ${out}/* && make -C ${project} OUT=${out}")
set_tests_properties(${SLUICE_TREE}consumer:pkg-config PROPERTIES
  ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER};PKG_CONFIG_PATH=${installed}/${CMAKE_INSTALL_LIBDIR}/pkgconfig")

set_tests_properties(${SLUICE_TREE}consumer:cmake ${SLUICE_TREE}consumer:pkg-config PROPERTIES
  FIXTURES_REQUIRED installed TIMEOUT 180)
