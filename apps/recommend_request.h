// A request to `qkv recommend`, from the command line or a line of JSON.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qkv/recommender.h"
#include "qkv/titles.h"

struct RecommendLine {
  std::optional<std::string> similar;  // the name of an item, if similar items are requested
  std::vector<std::string> history;    // names of items, and texts that name none
  std::vector<int64_t> times;          // of each event, or qkv::kNoTime
  std::vector<std::pair<std::string, std::vector<std::string>>>
      ambiguous;                                         // left out: a text, and the items it may name
  std::shared_ptr<const qkv::RecommendOptions> options;  // shared by requests, since lists may be long
  nlohmann::ordered_json id;                             // from the line, or null
  nlohmann::ordered_json user;                           // from the line, or null
};

// Puts the events of a user of the run before those of the request. Throws qkv::Error for an unknown user.
void add_user(RecommendLine& request, const std::string& user, const qkv::Recommender& recommender);

// Appends the item with this id or title.
void add_item(RecommendLine& request, const std::string& text, const qkv::Titles& titles, int64_t time = qkv::kNoTime);

// Appends items of events at the same time, whose order does not matter.
void add_basket(RecommendLine& request, const std::vector<std::string>& texts, const qkv::Recommender& recommender,
                const qkv::Titles& titles, int64_t time = qkv::kNoTime);

// Returns the item with this id or title. Throws qkv::Error, with suggestions, if there is none or more than one.
std::string item_named(const std::string& text, const qkv::Recommender& recommender, const qkv::Titles& titles);

// Returns all items that the texts may name; texts that name none are kept.
std::vector<std::string> items_of(const std::vector<std::string>& texts, const qkv::Titles& titles);

// Parses a line of JSON: an object with "history", a list of ids, titles and lists of those for events at once, or
// "user", or both, in which case the user's events come first; or with "similar", an id or a title. "times" has the
// time of each event of "history", or null. The names of qkv::RecommendOptions, and "include_seen", replace the values
// in `options`. "id" is returned with the answer. Throws qkv::Error; `id` is assigned first, if the line has one that
// can be read.
RecommendLine request_of_line(const std::string& line, const std::shared_ptr<const qkv::RecommendOptions>& options,
                              const qkv::Recommender& recommender, const qkv::Titles& titles,
                              nlohmann::ordered_json& id);
