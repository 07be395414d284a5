# Completion scripts of shells, which the program writes when it has been built. A cross build without an emulator for
# the program has none.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()
set(scripts ${PROJECT_BINARY_DIR}/completions)
add_custom_command(TARGET qkv_program POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -E make_directory ${scripts}
  COMMAND qkv_program completions bash > ${scripts}/qkv
  COMMAND qkv_program completions zsh > ${scripts}/_qkv
  COMMAND qkv_program completions fish > ${scripts}/qkv.fish)

if(QKV_INSTALL)
  set(QKV_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Folder of completions for zsh")
  install(FILES ${scripts}/qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${scripts}/_qkv DESTINATION ${QKV_ZSH_COMPLETIONS})
  install(FILES ${scripts}/qkv.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
