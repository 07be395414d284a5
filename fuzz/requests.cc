// A line of JSON that asks `qkv recommend` for items, next or similar ones, and its answer: one line of JSON, of no
// more items than are asked for, none of which is ruled out.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "fuzz/reader.h"
#include "program/lines/recommend_lines.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace {

constexpr int64_t kItems = 12;

// Its model reads the time between events.
std::string recommender_run(const qkv::testing::TempDir& directory) {
  qkv::Interactions log = qkv::testing::small_log(kItems);
  for (int64_t event = 0; event < std::ssize(log.events); event++) log.times.push_back(100 * event);
  qkv::testing::create_recommender(directory / "run", log);
  return directory / "run";
}

void check_answer(const qkv::RecommendLine& request, const qkv::Recommendations& answer, const qkv::Titles& titles) {
  using qkv::fuzz::require;
  const qkv::RecommendOptions& wanted = *request.options;
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  require(std::ssize(answer.items) <= std::min(wanted.top, kItems), "no more items than are asked for");
  for (const qkv::Recommendation& found : answer.items) {
    require(!wanted.allow || is_in(*wanted.allow, found.item), "an item is one of those that are allowed");
    require(!is_in(wanted.deny, found.item), "no item is one of those denied");
    require(!wanted.exclude_seen.value_or(true) || !is_in(request.history, found.item), "an item has not been seen");
  }
  const std::string line = qkv::recommendations_to_json(request, answer, titles);
  require(line.find('\n') == line.npos, "an answer is one line");
  qkv::parse_json(line, "answer");
}

}  // namespace

void qkv::fuzz::fuzz_requests(std::string_view bytes) {
  static const testing::TempDir directory;
  static const Recommender recommender = [] {
    testing::spill(directory / "catalogue", "id,kind,price\ni1,a|b,3\ni2,b,\ni3,c,4.5\n");
    return Recommender(recommender_run(directory), {directory / "catalogue"});
  }();
  static const Titles titles = [] {
    testing::spill(directory / "titles", "id,title\ni1,Heat (1995)\ni2,\"Matrix, The (1999)\"\ni3,Heat (1986)\n");
    return Titles(directory / "titles", {}, [](std::string_view name) { return recommender.has_item(name); });
  }();
  static const auto options = std::make_shared<const RecommendOptions>();
  std::string id;
  const RecommendLine request = parse_recommend_line(bytes, options, recommender, titles, id);
  check_answer(request,
               request.similar ? recommender.similar(*request.similar, *request.options)
                               : recommender.recommend(request.history, *request.options, request.times),
               titles);
}
