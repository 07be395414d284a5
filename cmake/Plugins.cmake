# Plugins that carry the messages of training by several processes (include/qkv/transport.h). They are loaded at run time,
# and the library does not link them.
enable_language(C)
file(GLOB local CONFIGURE_DEPENDS plugins/local/*.c)
add_library(qkv_local MODULE ${local})
target_include_directories(qkv_local PRIVATE include)
set_target_properties(qkv_local PROPERTIES C_STANDARD 99 C_VISIBILITY_PRESET hidden UNITY_BUILD OFF)
target_compile_options(qkv_local PRIVATE -Wall -Wextra -Wshadow $<$<BOOL:${QKV_WERROR}>:-Werror>)
