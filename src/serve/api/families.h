// The families of routes: each function is defined in the file of its name.
#pragma once

#include <span>

#include "serve/engine/route.h"

namespace qkv {

std::span<const Route> classify_routes();
std::span<const Route> gorse_routes();
std::span<const Route> health_routes();
std::span<const Route> libre_routes();
std::span<const Route> metrics_routes();
std::span<const Route> native_routes();
std::span<const Route> openai_routes();
std::span<const Route> openapi_routes();
std::span<const Route> page_routes();
std::span<const Route> tei_routes();
std::span<const Route> token_routes();

}  // namespace qkv
