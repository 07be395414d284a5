// Requests and answers of qkv recommend.
#include "program/lines/recommend_lines.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Names = std::vector<std::string>;

constexpr const char* kTitles = "id,title\ni1,Heat (1995)\ni2,\"Matrix, The (1999)\"\ni3,Heat (1986)\nx,Lost\n";

class RecommendLines : public ::testing::Test {
 protected:
  static std::string create(const std::string& run) {
    testing::create_recommender(run, testing::small_log(12));
    return run;
  }

  RecommendLine parse(std::string_view text) { return parse_recommend_line(text, options, recommender, titles, id); }
  std::string error(std::string_view text) {
    return error_of([&] { parse(text); });
  }
  std::string answer(std::string_view text) {
    const RecommendLine line = parse(text);
    return recommendations_to_json(line,
                                   line.similar ? recommender.similar(*line.similar, *line.options)
                                                : recommender.recommend(line.history, *line.options, line.times),
                                   titles);
  }

  testing::TempDir directory;
  const Recommender recommender{create(directory / "run")};
  const Titles titles{testing::TempFile("titles", kTitles).path(), {}, [this](std::string_view name) {
                        return recommender.has_item(name);
                      }};
  std::shared_ptr<const RecommendOptions> options;
  std::string id;
};

TEST_F(RecommendLines, NameItemsByIdOrTitle) {
  const RecommendLine line = parse(
      R"({"history": ["i5", "the matrix", 7, "Heat", ["i9", "i4", "i9"]], "times": [1, 2, null, 3, 4], "id": 0})");
  EXPECT_EQ(line.history, (Names{"i5", "i2", "7", "i4", "i9"}));
  EXPECT_EQ(line.times, (std::vector<int64_t>{1, 2, kNoTime, 4, 4}));
  ASSERT_EQ(line.ambiguous.size(), 1U);
  EXPECT_EQ(line.ambiguous[0].first, "Heat");
  EXPECT_EQ(line.ambiguous[0].second, (Names{"i1", "i3"}));
  EXPECT_EQ(line.user, std::nullopt);
  EXPECT_EQ(line.similar, std::nullopt);
  EXPECT_EQ(parse(R"_({"similar": "Matrix, The (1999)"})_").similar, "i2");
}

TEST_F(RecommendLines, EventsOfTheUserComeFirst) {
  const RecommendLine line = parse(R"({"history": ["i7"], "user": "bob"})");
  EXPECT_EQ(line.user, "bob");
  EXPECT_EQ(line.history, (Names{"i3", "i1", "i3", "i7"}));
  EXPECT_EQ(line.times, std::vector<int64_t>(4, kNoTime));
}

TEST_F(RecommendLines, OptionsReplaceThoseThatAreGiven) {
  EXPECT_EQ(*parse(R"({"history": []})").options, RecommendOptions());
  options = std::make_shared<RecommendOptions>(RecommendOptions{.top = 3, .deny = {"i0"}});
  EXPECT_EQ(parse(R"({"history": []})").options, options);  // shared
  const RecommendOptions expected{.top = 2,
                                  .exclude_seen = false,
                                  .allow = Names{"i1", "i3", "i4"},
                                  .deny = {"i0"},
                                  .explain = true,
                                  .diversity = 0.5};
  const RecommendLine line = parse(
      R"({"history": [], "top": 2, "include_seen": true, "allow": ["Heat", "i4"], "explain": true, "diversity": 0.5})");
  EXPECT_EQ(*line.options, expected);
  EXPECT_EQ(options->top, 3);
}

TEST_F(RecommendLines, TheIdIsReturnedInOneLine) {
  EXPECT_EQ(parse(R"({"history": [], "id": {"b": [1e1, "\u00e9\n"], "a": null}})").id,
            R"({"b":[10.0,"é\n"],"a":null})");
  EXPECT_EQ(id, R"({"b":[10.0,"é\n"],"a":null})");
  EXPECT_EQ(parse(R"({"history": [], "id": null})").id, "");
  EXPECT_EQ(id, "");
}

TEST_F(RecommendLines, TheIdOfARequestThatIsRefusedIsKnown) {
  EXPECT_EQ(error(R"({"history": 1, "id": 9})"), R"("history" must be a list of names (is 1))");
  EXPECT_EQ(id, "9");
  EXPECT_EQ(error("{"), "not valid JSON");
  EXPECT_EQ(id, "");
  error(R"({"top": 1})");
  EXPECT_EQ(id, "");
}

TEST_F(RecommendLines, RefuseOtherNamesAndTypes) {
  for (
      const auto& [text, expected] : std::initializer_list<std::pair<const char*, std::string>>{
          {R"({"history": ["a", 1.5]})", R"("history" must be a string or an integer (is 1.5))"},
          {R"({"history": [], "times": [1]})", "times must be one for each of 0 events (are 1)"},
          {R"({"history": ["a"], "times": [9223372036854775808]})",
           R"("times" must be integers or null (is 9223372036854775808))"},
          {R"({"history": [], "top": 0})", R"("top" must be an integer between 1 and 1073741824 (is 0))"},
          {R"({"history": [], "explain": 1})", R"("explain" must be true or false (is 1))"},
          {R"({"history": [], "where": {"b": 1, "a": 2}})", R"("where" must be a list of texts (is {"b":1,"a":2}))"},
          {R"({"history": [], "where": ["kind=a"]})", "where requires a catalogue"},
          {R"({"depth": 1})",
           R"(unknown name "depth" (choose from history, times, user, similar, include_seen, top, exclude_seen, allow, )"
           R"(deny, explain, where, diversity or id))"},
          {"{}", R"(must have "history", "user" or "similar")"},
          {R"({"user": "nobody"})", "unknown user \"nobody\""},
          {R"({"similar": "i1", "times": []})", R"("similar" must stand without "history", "times" and "user")"},
          {R"({"similar": "i1", "explain": true})", R"("similar" must stand without "explain")"},
          {R"({"similar": "Heat"})", R"("Heat" is ambiguous; use one of the ids: i1, i3)"},
          {R"({"similar": "The Matrixx"})",
           R"("The Matrixx" is unknown to the model; similar titles: Matrix, The (1999))"}})
    EXPECT_EQ(error(text).substr(0, expected.size()), expected) << text;
}

TEST_F(RecommendLines, AnswersHaveTheMembersOfTheRequest) {
  testing::expect_contains(answer(R"({"history": ["i1"], "allow": ["i2", "y"], "id": [1]})"),
                           R"_({"id":[1],"items":[{"rank":1,"item":"i2","title":"Matrix, The (1999)","score":)_");
  const std::string explained = answer(
      R"({"history": ["i1", "Heat", "heat", "Heat", "z"], "allow": ["i2", "y"], "explain": true, "user": "eve"})");
  EXPECT_EQ(explained.find(R"({"user":"eve","items":[)"), 0U);
  testing::expect_contains(explained, R"("effects":[)");
  testing::expect_contains(explained, R"(],"popular":false,"read":["i1","i1"],"unknown":["z"],"unknown_listed":["y"],)"
                                      R"("ambiguous":{"Heat":["i1","i3"],"heat":["i1","i3"]}})");
  const std::string similar = answer(R"({"similar": "i2", "top": 1})");
  EXPECT_EQ(similar.find(R"({"similar":"i2","items":[{"rank":1,"item":"i)"), 0U);
  EXPECT_EQ(similar.find("popular"), std::string::npos);
  EXPECT_EQ(
      answer(R"({"history": [], "top": 1})"),
      R"_({"items":[{"rank":1,"item":"i1","title":"Heat (1995)","score":3.0}],"popular":true,"read":[],"unknown":[]})_");
}

TEST_F(RecommendLines, TextShowsTitlesAndTheLargestEffects) {
  Recommendations found;
  found.items = {{"i2", 1.5, {0.25, -0.5, 0, 0.125}}, {"i5", -12, {}}};
  found.read = {"i1", "i5", "i6", "i7"};
  EXPECT_EQ(recommendations_to_text(found, titles),
            "  1    1.500  Matrix, The (1999)\n"
            "              i5 -0.500, Heat (1995) +0.250, i7 +0.125\n"
            "  2  -12.000  i5\n");
  found.items = {{"i1", 3, {}}};
  found.popular = true;
  EXPECT_EQ(recommendations_to_text(found, titles), "  1        3  Heat (1995)\n");
}

TEST_F(RecommendLines, TextHasOneLineForEachItemWhateverItsId) {
  Recommendations found;
  found.items = {{"a\nb\u2028c", 1, {}}};
  EXPECT_EQ(recommendations_to_text(found, titles), "  1    1.000  a b c\n");
}

TEST_F(RecommendLines, NotesReportWhatWasIgnored) {
  const RecommendLine line = parse(R"({"history": ["Heat", "The Matrixx", "x"]})");
  EXPECT_EQ(recommendation_notes(line, recommender.recommend(line.history), titles),
            (Names{"\"Heat\" is ambiguous and ignored; use one of the ids: i1 (Heat (1995)), i3 (Heat (1986))",
                   "\"The Matrixx\" is unknown to the model and ignored; similar titles: Matrix, The (1999)",
                   "\"Lost\" is unknown to the model and ignored",
                   "the history has no known item; these are the most popular items"}));
  EXPECT_EQ(recommendation_notes({}, {}, titles), Names());
}

TEST_F(RecommendLines, AnswersNeedNoOptions) {
  EXPECT_EQ(recommendations_to_json({}, {}, titles), R"({"items":[],"popular":false,"read":[],"unknown":[]})");
}

}  // namespace
}  // namespace qkv
