// The requests of qkv recommend: from the command line or a line of JSON.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "qkv/recommender.h"
#include "qkv/titles.h"

struct RecommendRequest {
  std::vector<std::string> history;  // names of items, and texts that were not found
  std::vector<int64_t> times;        // time of each event, or qkv::kNoTime
  std::vector<std::pair<std::string, std::vector<std::string>>>
      ambiguous;                                         // ignored texts and the items that they can mean
  std::shared_ptr<const qkv::RecommendOptions> options;  // shared between requests, as their lists may be long
  nlohmann::ordered_json id;                             // identifies the request; may be null
  nlohmann::ordered_json user;                           // may be null
};

// Inserts the events of a user of the run before all others. Throws qkv::Error for an unknown user.
void add_user(RecommendRequest& request, const std::string& user, const qkv::Recommender& recommender);

// Adds an item by its id or title.
void add_item(RecommendRequest& request, const std::string& text, const qkv::Titles& titles,
              int64_t time = qkv::kNoTime);

// Returns all items that the texts can mean, and texts without such an item unchanged.
std::vector<std::string> items_of(const std::vector<std::string>& texts, const qkv::Titles& titles);

// Parses a line of JSON: an object with "history" (a list of ids and titles), "user", or both, where the events of the
// user come first. "times" are the times of "history", with null for unknown ones. "top", "allow", "deny",
// "include_seen" and "explain" override `options`. "id" is returned with the answer. Throws qkv::Error for an invalid
// line; `id` is set first if it can be read.
RecommendRequest request_of_line(const std::string& line, const std::shared_ptr<const qkv::RecommendOptions>& options,
                                 const qkv::Recommender& recommender, const qkv::Titles& titles,
                                 nlohmann::ordered_json& id);
