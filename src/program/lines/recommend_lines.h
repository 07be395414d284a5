// The JSON lines of `qkv recommend`: requests, which name items by ids or titles, and their answers. docs/recommend.md
// describes the members of both. Requests that are refused are answered by error_to_json (program/lines/result_json.h).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/recommender.h"

namespace qkv {

// A request. The answer is that of Recommender::similar if `similar` is set, else of Recommender::recommend.
struct RecommendLine {
  std::optional<std::string> similar = {};  // the name of an item, if similar items are requested
  std::vector<std::string> history = {};    // names of items, and texts that name none
  std::vector<int64_t> times = {};          // of each event, or kNoTime
  // Texts that name several items, with these items. They are left out of the history.
  std::vector<std::pair<std::string, std::vector<std::string>>> ambiguous = {};
  std::shared_ptr<const RecommendOptions> options = nullptr;  // requests may share them; null means the defaults
  std::optional<std::string> user = {};                       // whose events begin the history
  std::string id = "";                                        // a JSON value, returned with the answer; "": none
};

// Parses a request: one JSON object of at most 4 levels. `options` has the values that the request does not set; null
// means the defaults. Throws Error of one line. `id` is assigned before: "" if the request has none that can be read.
RecommendLine parse_recommend_line(std::string_view text, const std::shared_ptr<const RecommendOptions>& options,
                                   const Recommender& recommender, const Titles& titles, std::string& id);

// Puts the events of a user of the run before those of the request. Throws Error for an unknown user.
void add_user(RecommendLine& line, const std::string& user, const Recommender& recommender);

// Appends the item with this id or title.
void add_item(RecommendLine& line, const std::string& text, const Titles& titles, int64_t time = kNoTime);

// Appends items of events at the same time, whose order does not matter.
void add_basket(RecommendLine& line, const std::vector<std::string>& texts, const Recommender& recommender,
                const Titles& titles, int64_t time = kNoTime);

// Returns the item with this id or title. Throws Error, with suggestions, if there is none or more than one.
std::string item_named(const std::string& text, const Recommender& recommender, const Titles& titles);

// Returns all items that the texts may name; texts that name none are kept.
std::vector<std::string> items_named(const std::vector<std::string>& texts, const Titles& titles);

// Returns the answer to a request as one JSON object, without a line end. The history of the request is not used.
std::string recommendations_to_json(const RecommendLine& line, const Recommendations& answer, const Titles& titles);

// Returns one line per item, by its title if it has one, and with explanations a second line.
std::string recommendations_to_text(const Recommendations& answer, const Titles& titles);

// Returns messages about events that were ignored, with similar titles. Compares each unknown event with all titles.
std::vector<std::string> recommendation_notes(const RecommendLine& line, const Recommendations& answer,
                                              const Titles& titles);

// Reads a request as parse_recommend_line does, which parses its text. Throws Error for a value that is not an object.
RecommendLine read_recommend_request(const nlohmann::ordered_json& request,
                                     const std::shared_ptr<const RecommendOptions>& options,
                                     const Recommender& recommender, const Titles& titles, std::string& id);

}  // namespace qkv
