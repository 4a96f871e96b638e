# What users link, cut by what it makes them link: `sluice::sluice` and `sluice::sale`. Each is one static library made
# of the objects of its folders, so that their number and their flags stay ours.

# sluice_library(NAME FOLDERS folder ... LIBS ...)   LIBS: what an installed package can find again
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LIBS" ${ARGN})
  add_library(sluice_${name}_library STATIC)
  foreach(folder IN LISTS ARG_FOLDERS)
    target_sources(sluice_${name}_library PRIVATE $<TARGET_OBJECTS:sluice_${folder}>)
  endforeach()
  target_include_directories(sluice_${name}_library INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(sluice_${name}_library INTERFACE cxx_std_23)
  target_link_libraries(sluice_${name}_library ${ARG_LIBS})
  set_target_properties(sluice_${name}_library PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  add_library(sluice::${name} ALIAS sluice_${name}_library)
endfunction()

sluice_library(sluice
  FOLDERS base resp store net engine redis open lock number id
  LIBS PRIVATE fmt::fmt OpenSSL::Crypto OpenSSL::SSL Threads::Threads PkgConfig::lua51cpp cctz)
set_target_properties(sluice_sluice_library PROPERTIES OUTPUT_NAME sluice)

sluice_library(sale
  FOLDERS sale sale_orders
  LIBS PUBLIC sluice_sluice_library PRIVATE soci_sqlite3 soci_core SQLite::SQLite3)
set_target_properties(sluice_sale_library PROPERTIES OUTPUT_NAME sluice_sale)
