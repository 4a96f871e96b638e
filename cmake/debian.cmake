# `cpack -G DEB` in a release tree: packages for Debian 12, cut as Debian cuts libraries (scripts/packages makes them).
set(CPACK_PACKAGE_VENDOR "Sluice")
set(CPACK_PACKAGE_CONTACT "Sluice maintainers <maintainers@sluice.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL libraries development programs)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)

set(api ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libsluice${api})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SHLIBDEPS ON)  # asks dpkg-shlibdeps which packages have what it links
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_DEPENDS tzdata)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_COMPONENT_LIBRARIES_DESCRIPTION "Shared libraries of Sluice")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsluice-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libsluice${api} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "libfmt-dev, libssl-dev, liblua5.1-0-dev, libcctz-dev, libhighwayhash-dev, libmurmurhash-dev, libsoci-dev, libsqlite3-dev, libpq-dev, libmariadb-dev")  # to link the static libraries
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, static libraries, CMake and pkg-config files of Sluice")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME sluice)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS tzdata)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "Locks, numbers, ids, sales and the sharding proxy from the command line")

include(CPack)
