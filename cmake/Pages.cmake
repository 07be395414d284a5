# Manual pages and completion scripts of shells, which the program writes when it has been built. A cross build without
# an emulator for the program has none.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()
set(pages ${PROJECT_BINARY_DIR}/pages)
add_custom_command(TARGET qkv_program POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
  COMMAND qkv_program manual ${pages}/man
  COMMAND qkv_program completions bash > ${pages}/qkv
  COMMAND qkv_program completions zsh > ${pages}/_qkv
  COMMAND qkv_program completions fish > ${pages}/qkv.fish)

if(QKV_INSTALL)
  set(QKV_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Folder of completions for zsh")
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${pages}/qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/_qkv DESTINATION ${QKV_ZSH_COMPLETIONS})
  install(FILES ${pages}/qkv.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
