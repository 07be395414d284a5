// A request for recommendations as a JSON value.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "qkv/recommend_lines.h"

namespace qkv {

// Reads a request as parse_recommend_line does, which parses its text. Throws Error for a value that is not an object.
RecommendLine read_recommend_request(const nlohmann::ordered_json& request,
                                     const std::shared_ptr<const RecommendOptions>& options,
                                     const Recommender& recommender, const Titles& titles, std::string& id);

}  // namespace qkv
