# sluice_pages(PROGRAM FOLDER)
#   Man pages and completion scripts come from a program's table of commands; it writes them below FOLDER of the build tree
#   as they lie below /usr/share.
function(sluice_pages program folder)
  if(SLUICE_SANITIZE)
    return()
  endif()
  set(pages ${PROJECT_BINARY_DIR}/${folder})
  add_custom_command(OUTPUT ${pages}.stamp
    COMMAND ${program} __pages ${pages} COMMAND ${CMAKE_COMMAND} -E touch ${pages}.stamp
    DEPENDS ${program} VERBATIM)
  add_custom_target(sluice_${folder} ALL DEPENDS ${pages}.stamp)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT programs)
endfunction()
