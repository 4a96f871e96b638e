# What users link, cut by what it makes them link, each static and shared, made of the objects of its folders, so that
# their number and their flags stay ours:
#   sluice::sluice   the primitives and both kinds of Store
#   sluice::client   the same without the embedded engine, and so without Lua; a program links one of the two
#   sluice::sale     flash sales, with orders in SQLite; stands on sluice::sluice
#   sluice::sale_databases  the same with PostgreSQL and MariaDB, too, and so with their clients; a program links one of the two

# sluice_library(NAME FOLDERS folder ... [USES library ...] [LIBS library ...])
#   USES: libraries of ours; LIBS: what they are made with, and an installed package can find again
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;USES;LIBS" ${ARGN})
  if(name STREQUAL "sluice")
    set(output sluice)
  else()
    set(output sluice_${name})
  endif()
  foreach(kind IN ITEMS static shared)
    set(library sluice_${name}_${kind})
    string(TOUPPER ${kind} type)
    add_library(${library} ${type})
    foreach(folder IN LISTS ARG_FOLDERS)
      target_sources(${library} PRIVATE $<TARGET_OBJECTS:sluice_${folder}>)
    endforeach()
    foreach(used IN LISTS ARG_USES)
      target_link_libraries(${library} PUBLIC sluice_${used}_${kind})
    endforeach()
    target_link_libraries(${library} PRIVATE ${ARG_LIBS})
    target_include_directories(${library} INTERFACE
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_compile_features(${library} INTERFACE cxx_std_20)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${output} EXPORT_NAME ${name}_${kind})
    add_library(sluice::${name}_${kind} ALIAS ${library})
  endforeach()
  target_link_options(sluice_${name}_static INTERFACE LINKER:--gc-sections)
  # Until 1.0 a minor version may break what the last one promised.
  set_target_properties(sluice_${name}_shared PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  # What is not ours stays inside: instances of the standard library's templates, fmt's.
  target_link_options(sluice_${name}_shared PRIVATE
    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map)
  set_target_properties(sluice_${name}_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map)
  add_library(sluice::${name} ALIAS sluice_${name}_static)  # inside this build; an installed package chooses
endfunction()

set(client_folders base resp store net topology redis open lock number id token room bloom cache)
set(client_libraries fmt::fmt OpenSSL::Crypto OpenSSL::SSL Threads::Threads cctz highwayhash murmurhash)
sluice_library(sluice FOLDERS ${client_folders} engine engine_small open_embedded LIBS ${client_libraries} PkgConfig::lua51cpp)
sluice_library(client FOLDERS ${client_folders} open_without_engine LIBS ${client_libraries})
if(SLUICE_SALE)
  set(sale_libraries soci_sqlite3 soci_core SQLite::SQLite3 fmt::fmt)
  sluice_library(sale FOLDERS sale sale_calm sale_sql sale_orders USES sluice LIBS ${sale_libraries})
  sluice_library(sale_databases FOLDERS sale sale_calm sale_sql sale_databases USES sluice
    LIBS soci_postgresql soci_mysql ${sale_libraries} PkgConfig::libpq PkgConfig::libmariadb)
endif()
