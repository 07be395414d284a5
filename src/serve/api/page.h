// The page at "/": translation with attention maps, recommendations and text generation in the browser. It is one HTML
// file of at most 60 KiB, made of the files in src/serve/assets and of the attention view in src/eval/assets.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

// Returns the page. It lives as long as the program.
std::string_view server_page();

// Returns the value of the Content-Security-Policy that must be sent with the page: no source of anything but the
// page's own script and style, which are named by their SHA-256, and requests to the server that the page came from.
std::string page_security_policy();

}  // namespace qkv
