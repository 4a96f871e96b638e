# `cmake --install`: the libraries, the public headers, the programs with their man pages and completions, a CMake package
# and pkg-config files. tests/consumer is built against the result. A component is a package of Debian (cmake/debian.cmake):
# libraries (shared), development, programs.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.hpp")
set(libraries sluice client)
if(SLUICE_SALE)
  list(APPEND libraries sale sale_databases)
endif()
foreach(name IN LISTS libraries)
  install(TARGETS sluice_${name}_static sluice_${name}_shared EXPORT sluice-${name}-targets
    ARCHIVE COMPONENT development
    LIBRARY COMPONENT libraries NAMELINK_COMPONENT development)
  install(EXPORT sluice-${name}-targets NAMESPACE sluice:: DESTINATION ${package_dir} COMPONENT development)
endforeach()
foreach(program IN ITEMS sluice_program sluice_engine_program sluice_proxy_program sluice_serve_program)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME COMPONENT programs)
  endif()
endforeach()
# `sluice` starts these programs, people do not: they lie where it looks for them (src/cli/programs.cpp).
foreach(name IN ITEMS bench demo doctor loadtest)
  if(TARGET sluice_${name}_program)
    install(TARGETS sluice_${name}_program RUNTIME DESTINATION libexec/sluice COMPONENT programs)
  endif()
endforeach()
# Each unit names its program without its folder, which systemd finds, so that the tree may be installed elsewhere than configured.
install(FILES ${PROJECT_SOURCE_DIR}/cmake/sluice-engine.service ${PROJECT_SOURCE_DIR}/cmake/sluice-proxy.service ${PROJECT_SOURCE_DIR}/cmake/sluice-serve.service
              ${PROJECT_SOURCE_DIR}/cmake/sluice-serve@.service
  DESTINATION lib/systemd/system COMPONENT programs)
# What Grafana, Prometheus and nginx read, to be copied from there.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT programs)
# Texts of pages, to begin others with.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/pages/texts DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT programs)

configure_package_config_file(cmake/sluice-config.cmake.in ${PROJECT_BINARY_DIR}/sluice-config.cmake
                              INSTALL_DESTINATION ${package_dir})
# Until 1.0 a minor version may break what the last one promised.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sluice-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sluice-config.cmake ${PROJECT_BINARY_DIR}/sluice-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

# The prefix is found from where the .pc file lies, so that the tree may be installed elsewhere than configured.
file(RELATIVE_PATH SLUICE_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" SLUICE_PREFIX_FROM_PC ${SLUICE_PREFIX_FROM_PC})

# sluice_pkg_config(LIBRARY DESCRIPTION [REQUIRES module] PRIVATE flag ...)   PRIVATE: what its static form links too
function(sluice_pkg_config SLUICE_LIBRARY SLUICE_DESCRIPTION)
  cmake_parse_arguments(ARG "" "REQUIRES" "PRIVATE" ${ARGN})
  list(JOIN ARG_PRIVATE " " SLUICE_PRIVATE_LIBS)
  set(SLUICE_REQUIRES "")
  if(ARG_REQUIRES)
    set(SLUICE_REQUIRES "${ARG_REQUIRES} = ${PROJECT_VERSION}")
  endif()
  string(REPLACE "_" "-" module ${SLUICE_LIBRARY})
  configure_file(cmake/sluice.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()

set(private_libs -lfmt -lssl -lcrypto -lcctz -lhighwayhash -lmurmurhash -pthread)
sluice_pkg_config(sluice "${PROJECT_DESCRIPTION}" PRIVATE -Wl,--gc-sections -llua5.1-c++ ${private_libs})
sluice_pkg_config(sluice_client "Sluice without the embedded engine" PRIVATE -Wl,--gc-sections ${private_libs})
if(SLUICE_SALE)
  sluice_pkg_config(sluice_sale "Flash sales on Sluice, with orders in SQLite" REQUIRES sluice
                    PRIVATE -lsoci_sqlite3 -lsoci_core -lsqlite3 -lfmt)
  sluice_pkg_config(sluice_sale_databases "Flash sales on Sluice, with orders in SQLite, PostgreSQL or MariaDB" REQUIRES sluice
                    PRIVATE -lsoci_postgresql -lsoci_mysql -lsoci_sqlite3 -lsoci_core -lsqlite3 -lpq -lmariadb -lfmt)
endif()
