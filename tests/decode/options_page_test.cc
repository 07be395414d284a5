// docs/options.md is generated from the descriptions of options (qkv/field.h). After a change of a description,
// regenerate it with
//   QKV_WRITE_DOCS=1 build/dev/tests/qkv_tests decode --gtest_filter='OptionsPage.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/fields.h"
#include "program/corpus/corpus.h"
#include "qkv/classifier.h"
#include "qkv/embedder.h"
#include "qkv/generator.h"
#include "qkv/hard_negatives.h"
#include "qkv/import.h"
#include "qkv/recommender.h"
#include "qkv/server.h"
#include "qkv/translator.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

std::string type_of(const bool&) { return "true or false"; }
std::string type_of(const int64_t&) { return "integer"; }
std::string type_of(const uint64_t&) { return "integer, at least 0"; }
std::string type_of(const double&) { return "number"; }
std::string type_of(const std::string&) { return "text"; }
std::string type_of(const std::vector<std::string>&) { return "list of texts"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string type_of(const Enum&) {
  return fmt::format("{}", fmt::join(kEnumNames<Enum>, ", "));
}
template <class Value>
std::string type_of(const std::optional<Value>&) {
  return type_of(Value());
}

template <class Value>
std::string default_of(const Value& value) {
  return fmt::format("{}", value);
}
template <class Enum>
requires std::is_enum_v<Enum> std::string default_of(const Enum& value) { return std::string(name_of(value)); }
std::string default_of(const std::string& value) { return value.empty() ? "none" : value; }
std::string default_of(const std::vector<std::string>&) { return "none"; }
template <class Value>
std::string default_of(const std::optional<Value>&) {
  return "not set";
}

// Returns a table for each group, in the order in which the groups appear.
class Tables {
 public:
  template <class Value>
  void operator()(std::string_view name, const Value& value, const Field& field) {
    if (field.visibility == Visibility::internal) return;
    std::string type = type_of(value);
    const bool any = field.range.min < -1e300 && field.range.max > 1e300;
    if (!any) type += ", " + to_string(field.range);
    add(name, type, default_of(value), field);
  }
  void operator()(std::string_view name, int64_t bytes, const QuantityField& field) {
    add(name, "size, " + accepted_bytes(field), bytes_text(bytes), field);
  }
  void operator()(std::string_view name, double seconds, const QuantityField& field) {
    add(name, "time, " + accepted_durations(field), duration_text(seconds), field);
  }
  std::string text() const {
    std::string all;
    for (const auto& [group, rows] : tables_)
      all += fmt::format("\n**{}**\n\n| option | accepted | default | effect |\n|---|---|---|---|\n{}", group, rows);
    return all;
  }

 private:
  void add(std::string_view name, const std::string& type, const std::string& otherwise, const Field& field) {
    table(field.group) += fmt::format("| `{}` | {} | {} | {} |\n", name, type, otherwise, field.help);
  }
  std::string& table(std::string_view group) {
    for (auto& [known, rows] : tables_)
      if (known == group) return rows;
    return tables_.emplace_back(group, "").second;
  }
  std::vector<std::pair<std::string_view, std::string>> tables_;
};

template <class Options>
std::string section(const std::string& title, const std::string& text) {
  Options options;
  Tables tables;
  visit_fields(options, tables);
  return fmt::format("\n## {}\n\n{}\n{}", title, text, tables.text());
}

std::string page() {
  return std::string(R"(# Options

The options of translation, generation, recommendation, embedding, classification, import, filters of text and the
server. This page is generated from the descriptions in the public headers: do not edit it; regenerate it as described
at the top of `tests/decode/options_page_test.cc`.

An option has one name everywhere: `no_repeat_ngram` is a member of the C++ struct, a keyword argument in Python, and
`--no-repeat-ngram` on the command line. Where the command line differs, the section says so.
)") +
         section<TranslateOptions>(
             "Translation",
             R"(`qkv translate`, `Translator.translate` in Python, `qkv::TranslateOptions` in C++. [decoding.md](decoding.md) describes
the search. On the command line, `source_language` is `--from` and `target_language` is `--to`; `--alignment` is the
default with `--json`, and `--no-alignment` turns it off. The options of the group *sampling* have no effect without
`sampling`; the command line refuses them.)") +
         section<GenerateOptions>(
             "Generation",
             R"(`qkv generate`, `Generator.generate` in Python, `qkv::GenerateOptions` in C++. On the command line, `slide` is
`--context slide` or `--context stop`, and `alternatives` is `--explain`.)") +
         section<RecommendOptions>(
             "Recommendation",
             R"(`qkv recommend`, `Recommender.recommend` in Python, `qkv::RecommendOptions` in C++, and the requests of
`qkv recommend` in JSON lines. `where` requires a catalogue: `--catalogue FILE`, `Recommender(run, catalogue=FILE)`,
`qkv::RecommenderTables` ([recommend.md](recommend.md#suggestions)). On the command line, `exclude_seen` is
`--exclude-seen` or `--include-seen`, and `--allow` and `--deny` name files with one item per line.)") +
         section<EmbedOptions>(
             "Embedding",
             R"(`qkv embed`, `Embedder.embed` in Python, `qkv::EmbedOptions` in C++. An option that is not set takes the value of the
run. On the command line, `normalize` is `--normalize` or `--no-normalize`.)") +
         section<HardNegativeOptions>(
             "Hard negatives",
             R"(`qkv embed --negatives`, `Embedder.mine_hard_negatives` in Python, `qkv::HardNegativeOptions` in C++.
[train-embedders.md](train-embedders.md#hard-negatives) describes them.)") +
         section<ClassifyOptions>(
             "Classification",
             R"(`qkv classify`, `Classifier.classify` in Python, `qkv::ClassifyOptions` in C++. An option that is not set takes the
value of the run ([classify.md](classify.md)).)") +
         section<RerankOptions>("Reranking",
                                "`qkv rerank`, `Classifier.rerank` in Python, `qkv::RerankOptions` in C++.") +
         section<Placement>(
             "Devices",
             R"(Options of `qkv translate`, `summarize`, `generate`, `chat`, `embed`, `classify`, `rerank` and `recommend`, arguments
of the classes of Python, and `qkv::Placement` in C++ ([devices](design/devices.md#inference)).)") +
         section<ImportOptions>(
             "Import",
             R"(`qkv import`, `qkv::ImportOptions` in C++, where the last group is the member `torch`. [import.md](import.md) says which
models are read.)") +
         section<PairFilters>("Filters of training text",
                              "`qkv data check` and `qkv data clean`, `qkv::PairFilters` in C++. [data.md](data.md) "
                              "describes them.") +
         section<ServerOptions>(
             "Server",
             R"(`qkv serve`, `qkv::ServerOptions` in C++. `--config FILE` reads them from a JSON object with these names; the command
line overrides it. A size is a number of bytes, also as text with a unit, such as 64K, 2M or 1G; a time is a number of
seconds, also as text such as 500ms, 60s, 2min or 1h. On the command line, runs are arguments without a flag.)");
}

TEST(OptionsPage, IsGeneratedFromTheDescriptions) {
  const std::string path = QKV_GOLDEN_DIR "/../../docs/options.md";
  if (std::getenv("QKV_WRITE_DOCS")) testing::spill(path, page());
  EXPECT_EQ(testing::slurp(path), page()) << "write docs/options.md again as this file says";
}

TEST(OptionsPage, DescribesEveryOptionInOneLine) {
  const auto check = [](auto options) {
    visit_fields(options, [](std::string_view name, auto&, const Field& field) {
      EXPECT_FALSE(field.help.empty()) << name;
      EXPECT_EQ(field.help.find('\n'), std::string_view::npos) << name;
      EXPECT_NE(field.help.back(), '.') << name;
      EXPECT_FALSE(field.group.empty()) << name;
    });
  };
  check(TranslateOptions());
  check(GenerateOptions());
  check(RecommendOptions());
  check(HardNegativeOptions());
  check(EmbedOptions());
  check(ClassifyOptions());
  check(RerankOptions());
  check(Placement());
  check(ImportOptions());
  check(ServerOptions());
}

}  // namespace
}  // namespace qkv
