// The output of qkv recommend.
#pragma once

#include <string>

#include "qkv/recommender.h"
#include "qkv/titles.h"
#include "recommend_request.h"

// Return an answer, or an error, as one line of JSON (docs/recommend.md). id is that of the request, or null.
std::string json_line(const RecommendLine& request, const qkv::Recommendations& answer, const qkv::Titles& titles);
std::string json_error(const nlohmann::ordered_json& id, const std::string& message);

// Returns one line per item, by its title if it has one, and with explanations a second line.
std::string text_lines(const qkv::Recommendations& answer, const qkv::Titles& titles);

// Returns messages about events that were ignored, with similar titles.
std::vector<std::string> notes(const RecommendLine& request, const qkv::Recommendations& answer,
                               const qkv::Titles& titles);
