# sluice_embed_assets(TARGET FOLDER)
#   Puts the files of FOLDER, a folder beside src/, into the program: what a page consists of (html, js, css, svg, json). They are rows
#   of "server/<FOLDER>_assets.def": ASSET(path, media, sha256, plain, gzip), `plain` and `gzip` of type std::string_view.
#   gzip -n writes neither name nor time, so that the same files are the same bytes on every machine.
find_program(SLUICE_GZIP gzip REQUIRED)

function(sluice_embed_assets target folder)
  set(root ${PROJECT_SOURCE_DIR}/${folder})
  file(GLOB_RECURSE assets RELATIVE ${root} CONFIGURE_DEPENDS
    ${root}/*.html ${root}/*.js ${root}/*.css ${root}/*.svg ${root}/*.json)
  list(SORT assets)
  list(TRANSFORM assets PREPEND ${root}/ OUTPUT_VARIABLE sources)
  set(rows ${PROJECT_BINARY_DIR}/generated/server/${folder}_assets.def)
  add_custom_command(
    OUTPUT ${rows}
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} "-DASSETS=${assets}" -DROWS=${rows} -DGZIP=${SLUICE_GZIP}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_assets_rows.cmake
    DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/embed_assets_rows.cmake
    COMMENT "Embedding ${folder}" VERBATIM)
  target_sources(${target} PRIVATE ${rows})
endfunction()
