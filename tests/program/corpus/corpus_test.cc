#include "program/corpus/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "program/corpus/hash_set.h"
#include "program/corpus/pair_filter.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;

TEST(HashSet, FindsWhatWasInserted) {
  HashSet set;
  EXPECT_FALSE(set.contains(5));
  for (uint64_t i = 0; i < 5000; i++) EXPECT_TRUE(set.insert(i << 10)) << i;
  for (uint64_t i = 0; i < 5000; i++) EXPECT_FALSE(set.insert(i << 10)) << i;
  EXPECT_TRUE(set.contains(1024));
  EXPECT_FALSE(set.contains(1025));
}

TEST(CleanSpaces, ReducesWhiteSpaceAndControlCharacters) {
  for (const auto& [text, clean] : std::map<std::string, std::string>{{"a b", "a b"},
                                                                      {"  a \t b\r", "a b"},
                                                                      {"a\u00A0b", "a b"},
                                                                      {"\uFEFFa\u200Bb\u2028", "a b"},
                                                                      {"\x01", ""},
                                                                      {"", ""},
                                                                      {"a\u3000b\u0085", "a b"},
                                                                      {"\xC2", "\xC2"},
                                                                      {"ä é", "ä é"}}) {
    std::string given = text;
    EXPECT_EQ(clean_spaces(given), text != clean) << text;
    EXPECT_EQ(given, clean);
  }
}

// Sentences of two small languages, all different.
std::string english(int i) { return "the dog number " + std::to_string(i) + " sees the cat in the garden"; }
std::string german(int i) { return "der Hund Nummer " + std::to_string(i) + " sieht die Katze im Garten"; }

class Corpus : public ::testing::Test {
 protected:
  // Writes good pairs, followed by the lines.
  std::vector<std::string> tsv(const std::string& name, const std::string& lines = "", int begin = 0,
                               int end = 200) const {
    std::string text;
    for (int i = begin; i < end; i++) text += english(i) + "\t" + german(i) + "\n";
    spill(directory_ / name, text + lines);
    return {directory_ / name};
  }
  static int64_t count(const PairReport& report, const std::string& name) {
    for (const Defect& defect : report.defects)
      if (defect.name == name) return defect.pairs;
    ADD_FAILURE() << name;
    return -1;
  }

  testing::TempDir directory_;
};

TEST_F(Corpus, AGoodTextPassesAllFilters) {
  const CorpusReport report = check_corpus(tsv("a.tsv"));
  EXPECT_EQ(report.train.kept, 200);
  EXPECT_TRUE(report.dev.files.empty());
  EXPECT_TRUE(advice_for(report).empty());
  EXPECT_NEAR(report.train.source_words, 10, 1e-9);
}

TEST_F(Corpus, EveryDefectIsCountedWithItsFirstLine) {
  const std::pair<const char*, std::string> lines[] = {
      {"tab", "no tab here"},
      {"tab", "two\ttabs\there"},
      {"encoding", "caf\xE9\tKaffee"},
      {"empty", " \tleer"},
      {"garbled", "it\u00E2\u20AC\u2122s\tes ist"},
      {"garbled", "M\u00C3\u00BCller\tm"},
      {"garbled", "a \uFFFD b\tc"},
      {"garbled", "a &lt;b&gt;bold&lt;/b&gt; word\tein <b>fettes</b> Wort"},
      {"garbled", "he said \"yes\"\ter sagte &quot;ja&quot;"},
      {"garbled", "salt &amp; pepper\tSalz & Pfeffer"},
      {"long", std::string(500, 'a') + std::string(1600, 'b') + "\t" + std::string(2100, 'c')},
      {"ratio", "ok\t" + std::string(60, 'x')},
      {"copy", "Tom\tTom"},
      {"swapped", german(900) + "\t" + english(900)},
      {"language", german(901) + "\t" + german(902)},
      {"duplicate", english(3) + " \t" + german(3)}};
  std::string text;
  std::map<std::string, int64_t> expected, first;
  int64_t line = 200;
  for (const auto& [name, pair] : lines) {
    text += pair + "\n";
    expected[name]++;
    first.emplace(name, ++line);
  }
  const PairReport report = check_corpus(tsv("a.tsv", text)).train;
  for (const Defect& defect : report.defects) {
    EXPECT_EQ(defect.pairs, expected[defect.name]) << defect.name;
    EXPECT_EQ(defect.first_line, first[defect.name]) << defect.name;
  }
  EXPECT_EQ(report.kept, 200);
  EXPECT_EQ(report.pairs, line);
}

TEST_F(Corpus, FiltersCanBeSwitchedOff) {
  PairFilters none;
  none.max_words = none.max_characters = 0, none.max_ratio = 0;
  none.garbled = none.copies = none.languages = none.duplicates = none.overlap = false;
  const std::string lines = "a \uFFFD b\tc\nTom\tTom\n" + english(3) + "\t" + german(3) + "\n";
  const PairReport report = check_corpus(tsv("a.tsv", lines), {}, none).train;
  EXPECT_EQ(report.kept, 203);
  EXPECT_EQ(report.several, 1);
}

TEST_F(Corpus, TrainingSourcesThatAreInTheDevTextOverlap) {
  const CorpusReport report = check_corpus(tsv("train.tsv"), tsv("dev.tsv", "", 190, 210));
  EXPECT_EQ(count(report.train, "overlap"), 10);
  EXPECT_EQ(report.train.kept, 190);
  EXPECT_EQ(report.dev.kept, 20);
  EXPECT_EQ(advice_for(report).size(), 2u);
  EXPECT_NE(advice_for(report).back().find(": 10 sources are also in the dev text"), std::string::npos);
  const CorpusReport one = check_corpus(tsv("train.tsv"), tsv("dev.tsv", "", 199, 210));
  EXPECT_NE(advice_for(one).back().find(": 1 source is also in the dev text"), std::string::npos);
}

TEST_F(Corpus, ADevTextInTheOtherOrderIsNoticed) {
  std::string swapped;
  for (int i = 300; i < 320; i++) swapped += german(i) + "\t" + english(i) + "\n";
  const CorpusReport report = check_corpus(tsv("train.tsv"), tsv("dev.tsv", swapped, 0, 0));
  EXPECT_TRUE(report.dev.swapped);
  EXPECT_NE(advice_for(report).front().find("another order"), std::string::npos);
}

TEST_F(Corpus, TextsInOneLanguageHaveNoWrongSide) {
  std::string same;
  for (int i = 0; i < 200; i++) same += english(i) + "\t" + english(i + 1000) + "\n";
  EXPECT_EQ(check_corpus(tsv("a.tsv", same, 0, 0)).train.kept, 200);
}

TEST_F(Corpus, CleaningWritesWhatIsKept) {
  const std::vector<std::string> train = tsv("a.tsv", "  Good \u00A0 evening \tGuten Abend\nTom\tTom\n", 0, 2);
  const std::string out = directory_ / "out.tsv";
  const CorpusReport report = clean_corpus(train, {out});
  EXPECT_EQ(report.train.kept, 3);
  EXPECT_EQ(report.train.spaces, 1);
  EXPECT_EQ(slurp(out), english(0) + "\t" + german(0) + "\n" + english(1) + "\t" + german(1) + "\n" +
                            "Good evening\tGuten Abend\n");
  EXPECT_EQ(check_corpus({out}).train.kept, 3);  // a clean text stays as it is
}

TEST_F(Corpus, TwoFilesStayAligned) {
  const std::string source = directory_ / "a.en", target = directory_ / "a.de";
  spill(source, "one\r\n\ntwo\nthree");
  spill(target, "eins\nleer\nzwei\n\n");
  clean_corpus({source, target}, {directory_ / "o.en", directory_ / "o.de"});
  EXPECT_EQ(slurp(directory_ / "o.en"), "one\ntwo\n");
  EXPECT_EQ(slurp(directory_ / "o.de"), "eins\nzwei\n");
}

TEST_F(Corpus, FilesOfDifferentLengthsAreRefusedAndLeaveNoOutput) {
  const std::string source = directory_ / "a.en", target = directory_ / "a.de", out = directory_ / "o";
  spill(source, "one\ntwo\nthree\n");
  spill(target, "eins\nzwei\n");
  spill(out, "before");
  const auto error = error_of([&] { clean_corpus({source, target}, {out, directory_ / "p"}); });
  EXPECT_NE(error.find("have 3 and 2 lines"), std::string::npos);
  EXPECT_EQ(slurp(out), "before");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "p"));
}

TEST_F(Corpus, OutputsAreChecked) {
  const std::vector<std::string> train = tsv("a.tsv");
  EXPECT_NE(error_of([&] { clean_corpus(train, train); }).find("is an input"), std::string::npos);
  EXPECT_NE(error_of([&] { clean_corpus(train, {"x", "y"}); }).find("as many files"), std::string::npos);
  EXPECT_NE(error_of([&] { check_corpus({directory_ / "absent"}); }).find("does not exist"), std::string::npos);
  EXPECT_NE(error_of([&] { check_corpus({directory_.path()}); }).find("regular file"), std::string::npos);
}

TEST_F(Corpus, AnEmptyTextHasNoPairs) {
  const CorpusReport report = check_corpus(tsv("a.tsv", "", 0, 0));
  EXPECT_EQ(report.train.pairs, 0);
  EXPECT_NE(advice_for(report).front().find("has no pairs"), std::string::npos);
  EXPECT_NO_THROW(nlohmann::json::parse(to_json(report)));
}

TEST_F(Corpus, JsonHasAllCounts) {
  const auto json = nlohmann::json::parse(to_json(check_corpus(tsv("a.tsv", "Tom\tTom\n"))));
  EXPECT_EQ(json["train"]["pairs"], 201);
  EXPECT_EQ(json["train"]["defects"].size(), kDefectKinds);
  EXPECT_TRUE(json["dev"].is_null());
}

TEST_F(Corpus, ALogIsReadAsByTraining) {
  std::string log = "userId,movieId,timestamp\n";
  for (int user = 0; user < 5; user++)
    for (int i = 0; i < 4; i++)
      log += std::to_string(user) + "," + std::to_string(i) + "," + std::to_string(100 + i) + "\n";
  spill(directory_ / "log.csv", log + "1,2,102\n");
  const ReadReport report = check_logs({directory_ / "log.csv"});
  EXPECT_EQ(report.events, 20);
  EXPECT_EQ(report.duplicates, 1);
  EXPECT_TRUE(advice_for(report).empty());
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["users"], 5);
  spill(directory_ / "pairs.txt", "a x\na y\na z\n");
  EXPECT_NE(advice_for(check_logs({directory_ / "pairs.txt"})).front().find("no times"), std::string::npos);
}

}  // namespace
}  // namespace qkv
