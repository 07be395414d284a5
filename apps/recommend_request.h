// What `qkv recommend` is asked: on the command line, or in a line of JSON.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "qkv/recommender.h"
#include "qkv/titles.h"

struct RecommendRequest {
  std::vector<std::string> history;  // names of items; others are those that nothing was found for
  std::vector<int64_t> times;        // of each event, or qkv::kNoTime
  std::vector<std::pair<std::string, std::vector<std::string>>> ambiguous;  // left out: a text, the items it can mean
  std::shared_ptr<const qkv::RecommendOptions> options;  // that requests share, since their lists may be long
  nlohmann::ordered_json id;                             // of the line, or null
  nlohmann::ordered_json user;                           // likewise
};

// Adds the events of a user of the run before the others. Throws qkv::Error for another.
void add_user(RecommendRequest& request, const std::string& user, const qkv::Recommender& recommender);

// Adds an item that is called by its id or title.
void add_item(RecommendRequest& request, const std::string& text, const qkv::Titles& titles,
              int64_t time = qkv::kNoTime);

// All items that the texts can mean; those that mean none as they are.
std::vector<std::string> items_of(const std::vector<std::string>& texts, const qkv::Titles& titles);

// A line of JSON: an object with "history", a list of ids and titles, "user", or both, the user's events being the
// first; "times" are those of "history", null where there is none; "top", "allow", "deny", "include_seen" and "explain"
// stand in the place of those in `options`; "id" comes back with the answer. Throws qkv::Error; `id` is assigned
// before, if the line has one that can be read.
RecommendRequest request_of_line(const std::string& line, const std::shared_ptr<const qkv::RecommendOptions>& options,
                                 const qkv::Recommender& recommender, const qkv::Titles& titles,
                                 nlohmann::ordered_json& id);
