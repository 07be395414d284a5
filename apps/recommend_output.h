// How `qkv recommend` answers.
#pragma once

#include <string>

#include "qkv/recommender.h"
#include "qkv/titles.h"
#include "recommend_request.h"

// One line of JSON; docs/recommend.md describes it.
std::string json_line(const RecommendRequest& request, const qkv::Recommendations& answer, const qkv::Titles& titles);
std::string json_error(const nlohmann::ordered_json& id, const std::string& message);  // id: null if there is none

// A line for each item, and with explanations one more; titles where there are some.
std::string text_lines(const qkv::Recommendations& answer, const qkv::Titles& titles);

// What the user should know: events that were left out, and titles that are like them.
std::vector<std::string> notes(const RecommendRequest& request, const qkv::Recommendations& answer,
                               const qkv::Titles& titles);
