# `cmake --install`: the libraries, the public headers, the program, a CMake package and pkg-config files.
# tests/consumer is built against the result.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS sluice_sluice_library EXPORT sluice-targets)
install(TARGETS sluice_sale_library EXPORT sluice-sale-targets)
if(TARGET sluice_program)
  install(TARGETS sluice_program)
endif()
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${package_dir})
install(EXPORT sluice-sale-targets NAMESPACE sluice:: DESTINATION ${package_dir})

configure_package_config_file(cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Until 1.0 a minor version may break what the last one promised.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake
        DESTINATION ${package_dir})

# The prefix is found from where the .pc file lies, so that the tree may be installed elsewhere than configured.
file(RELATIVE_PATH SLUICE_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SLUICE_PREFIX_FROM_PC ${SLUICE_PREFIX_FROM_PC})
foreach(name IN ITEMS sluice sluice-sale)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
