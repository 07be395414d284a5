# qkv_embed(TARGET FILE...): gives the C++ code of TARGET the text of each FILE as a constant.
# FILE is a path below src/: src/eval/page.html becomes `constexpr std::string_view kPageHtml` of namespace qkv, declared
# by #include "eval/page.html.h". The text must be UTF-8 and not contain `)qkv_embed"`.
function(qkv_embed target)
  foreach(file ${ARGN})
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY src OUTPUT_VARIABLE path)
    cmake_path(GET file FILENAME name)
    string(REGEX REPLACE "[^A-Za-z0-9]+" ";" words "${name}")
    set(constant k)
    foreach(word ${words})
      string(SUBSTRING "${word}" 0 1 first)
      string(SUBSTRING "${word}" 1 -1 rest)
      string(TOUPPER "${first}" first)
      string(APPEND constant "${first}${rest}")
    endforeach()
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} text)
    set(header ${PROJECT_BINARY_DIR}/embedded/${path}.h)
    file(WRITE ${header}.new "// Generated from ${file}.\n#pragma once\n\n#include <string_view>\n\nnamespace qkv {\n\n"
         "inline constexpr std::string_view ${constant} = R\"qkv_embed(${text})qkv_embed\";\n\n}  // namespace qkv\n")
    file(COPY_FILE ${header}.new ${header} ONLY_IF_DIFFERENT)
  endforeach()
  target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/embedded)
endfunction()
