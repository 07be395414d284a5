// Recommendation with a run directory: the next items after any history, of a known user or not, and items that are
// similar to one; and titles of items, to display them and to find them by. docs/recommend.md describes the scores,
// filters and explanations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "qkv/field.h"
#include "qkv/hidden_states.h"
#include "qkv/interactions.h"
#include "qkv/placement.h"

namespace [[gnu::visibility("default")]] qkv {

struct RecommendOptions {
  int64_t top = 10;
  std::optional<bool> exclude_seen = {};
  std::optional<std::vector<std::string>> allow = {};
  std::vector<std::string> deny = {};
  bool explain = false;
  std::vector<std::string> where = {};
  double diversity = 0;

  bool operator==(const RecommendOptions&) const = default;
};

template <class Visitor>
void visit_fields(RecommendOptions& o, Visitor&& visit) {
  visit("top", o.top, {"Maximum number of items to return", "output", between(1, int64_t{1} << 30), kCommon});
  visit("exclude_seen", o.exclude_seen,
        {"Do not return items of the history; not set: as the run was trained, true unless with repeats",
         "output",
         {},
         kCommon});
  visit("allow", o.allow, {"Return only these items; without it, all are allowed", "output"});
  visit("deny", o.deny, {"Never return these items", "output"});
  visit("explain", o.explain,
        {"Report how much each event of the history changes each score; costs one pass per event",
         "output",
         {},
         kCommon});
  visit(
      "where", o.where,
      {"Return only items whose attributes satisfy this condition, such as genre=comedy or price<20; several must all "
       "hold",
       "output",
       {},
       kCommon});
  visit("diversity", o.diversity,
        {"Weight of differing from the items ranked above (maximal marginal relevance); 0 is off, 1 ignores the scores",
         "output", between(0, 1), kCommon});
}

// Tables that a recommender reads in addition to its run, and the part of its log that it uses. Columns are separated
// by commas, semicolons, tabs or "::", with quotes as in CSV; the first row has their names.
struct RecommenderTables {
  std::string catalogue = {};    // attributes of items, for RecommendOptions::where; "": none
  std::string item_column = {};  // the column of items in the catalogue, a name or a number from 1; "": the first
  // Items that joined after training, with the feature columns that the run was trained with. They get vectors from
  // their features, and can be recommended and stand in histories like other items. "": none
  std::string new_items = {};
  // "test" or "validation": only the events before this held-out part are counted and are histories of users, so that
  // lists can be compared with the held-out events; they are those of qkv::evaluate_run. "": all events of the log
  std::string before = {};
};

struct Recommendation {
  std::string item;
  // h · E[item]: after softmax training a log-probability up to a constant; plus the transitions of the run, if it has
  // any. For popular items the number of events; for similar items the cosine.
  double score = 0;
  std::vector<double> effects;  // for each event of `read`: the score minus the score without that event
};

struct Recommendations {
  std::vector<Recommendation> items;        // best first; with diversity, in the order in which they were chosen
  bool popular = false;                     // the history has no known item, and these are the most popular ones
  std::vector<std::string> read;            // events that the model read, oldest first: the last known ones
  std::vector<std::string> unknown;         // events that are not items of the model
  std::vector<std::string> unknown_listed;  // entries of allow and deny that are not items of the model
};

// A history with its own options.
struct RecommendRequest {
  std::vector<std::string> history;
  std::vector<int64_t> times = {};                            // as in Recommender::recommend
  std::shared_ptr<const RecommendOptions> options = nullptr;  // requests may share them; null means the defaults
};

// A trained model with its catalogue and log. Methods are thread-safe; each call uses the thread pool internally. The
// memory of a call does not grow with the catalogue, except for the items that are returned.
class Recommender {
 public:
  // Loads a run directory. Throws Error, naming the file, if the run is incomplete or damaged, or a table is invalid,
  // or if the device or the precision is not available.
  explicit Recommender(const std::string& run_directory, const RecommenderTables& tables = {},
                       const Placement& placement = {});
  ~Recommender();
  Recommender(Recommender&&) noexcept;
  Recommender& operator=(Recommender&&) noexcept;

  // Returns what was found when tables were read, one line each.
  const std::vector<std::string>& messages() const;

  // Return names as spelled in the log, in the order of their ids; new items follow.
  const std::vector<std::string>& items() const;
  const std::vector<std::string>& users() const;
  bool has_item(std::string_view item) const;
  bool has_user(std::string_view user) const;

  // Return the events of a user of the log in time order, and the time of each, in the unit of the log
  // (docs/interactions.md) or kNoTime. Throw Error for an unknown user.
  std::vector<std::string> history(std::string_view user) const;
  std::vector<int64_t> times(std::string_view user) const;

  int64_t max_length() const;  // maximum number of events that the model reads

  // Returns the next items after a history of item names, oldest first. times: empty, or the time of each event in the
  // unit of the log, or kNoTime; a model without time gaps ignores them. Throws Error for an option out of range, and
  // where check_times does.
  Recommendations recommend(const std::vector<std::string>& history, const RecommendOptions& options = {},
                            const std::vector<int64_t>& times = {}) const;

  // Recommends for many histories; result i belongs to history i and does not depend on the others. times: empty, or
  // the times of each history.
  std::vector<Recommendations> recommend_all(const std::vector<std::vector<std::string>>& histories,
                                             const RecommendOptions& options = {},
                                             const std::vector<std::vector<int64_t>>& times = {}) const;

  // Recommends for many histories with options of each. Result i has the bytes that recommend returns for request i.
  std::vector<Recommendations> recommend_all(const std::vector<RecommendRequest>& requests) const;

  // Returns items of events at the same time, such as a basket, in the order in which a history should have them: by
  // id, without duplicates, and then the unknown ones. The order in which they are given does not matter.
  std::vector<std::string> basket(const std::vector<std::string>& items) const;

  // Returns the items whose vectors have the largest cosines to that of an item, without that item. exclude_seen has
  // no effect. Throws Error for an unknown item, an option out of range, and with explain.
  Recommendations similar(std::string_view item, const RecommendOptions& options = {}) const;

  // Returns the hidden states of all layers for a history, of which the model reads the last max_length() events, with
  // the names of the items as pieces. The score of an item is the product of its vector and the last state of the last
  // event, to which recommend adds transitions if the run has some. Throws Error for an empty history, an unknown item,
  // and where check_times does.
  HiddenStates hidden(const std::vector<std::string>& history, const std::vector<int64_t>& times = {}) const;

  // Throws Error if the methods above would refuse these options: a number out of range, a condition that is invalid or
  // of a column that the catalogue lacks, or a list with diversity that is too long.
  void check(const RecommendOptions& options) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Throws Error unless there are as many times as events, or none, in ascending order; kNoTime is allowed anywhere.
void check_times(std::span<const int64_t> times, size_t events);

// A table of titles. Comparison ignores case and repeated blanks. "Matrix, The (1999)" also matches "The Matrix
// (1999)", and both match without the year. Immutable; methods may be called from several threads.
class Titles {
 public:
  using IsItem = std::function<bool(std::string_view)>;

  // Makes an empty table: items have only ids.
  explicit Titles(IsItem is_item) : is_item_(std::move(is_item)) {}

  // Reads a table with columns separated by commas, semicolons, tabs or "::", with quotes as in CSV. `columns` are
  // those of id and title: names in the first line, or numbers from 1. If empty, the id is the first column, and the
  // title is the column "title" or "name", or else the second one. Throws Error, naming file and line.
  Titles(const std::string& path, const std::vector<std::string>& columns, IsItem is_item);

  // Returns the title of an item; "" if it has none.
  const std::string& title(const std::string& item) const;

  // Returns the items that a text can mean: the item with this id, or else all with this title. If several match and
  // is_item accepts some of them, only these are returned.
  std::vector<std::string> find(std::string_view text) const;

  // Returns the titles that are most similar to a text, most similar first.
  std::vector<std::string> near(std::string_view text, int64_t most = 3) const;

  // Returns items for a text that is being typed: those that it means, then those whose title begins with it, then
  // those with a word that begins with it, then those with words that begin with each of its words; if there are none,
  // those with similar titles. Without a table of titles, returns the `items` that begin with it.
  std::vector<std::string> suggest(std::string_view text, int64_t most, const std::vector<std::string>& items) const;

  // Returns the titles of the items that `suggest` returns for a text that is no title.
  std::vector<std::string> similar(std::string_view text, int64_t most = 3) const;

  // Returns why no title will be shown, with an id of each side, if none of the ids in the table is an item; otherwise
  // "". items: all of them.
  std::string doubt(const std::vector<std::string>& items) const;

  // Splits a list at commas into texts that find() knows, which may contain commas themselves. From the left, it takes
  // the longest text that is found; text that is not found extends to the next one that is.
  std::vector<std::string> split(std::string_view list) const;

 private:
  struct Row {
    std::string item, title;
  };
  using Index = std::unordered_map<std::string, std::vector<size_t>>;  // by plain title: rows

  void add(std::string_view item, std::string_view title);

  IsItem is_item_;
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> by_item_;
  Index with_year_, without_year_;
};

}  // namespace qkv
