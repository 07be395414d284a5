// Models of other projects with the results of their own programs: hidden states, logits, greedy search, scores and
// attention. Greedy search here recomputes every position at each step, so it shares nothing with src/decode.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "qkv/import.h"
#include "qkv/translator.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

const std::string kCases = QKV_SHARED_DIR "/cases/";

json read_json(const std::string& path) { return json::parse(std::ifstream(path)); }

class ImportedRun {
 public:
  explicit ImportedRun(const std::string& source) : run_(make(source, path())) {}

  const TranslatorRun& run() const { return run_; }
  std::string path() const { return directory_ / "run"; }

  Ids source_ids(const std::string& text) const {
    Ids ids = run_.tokens.source_before;
    const Ids pieces = run_.tokenizers.source.encode(text);
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    ids.insert(ids.end(), run_.tokens.source_after.begin(), run_.tokens.source_after.end());
    return ids;
  }

  // The logits of the token after each of `target`, which begins with the start token: [T, V].
  std::vector<std::vector<double>> logits(const Ids& source, const Ids& target) const {
    testing::SpoiledArena arena;
    Context context{arena};
    Packed x, y;
    x.append(source);
    y.append(target);
    Transformer<float>::Saved saved;
    run_.model->forward(x, y, context, saved);
    const ModelConfig& config = run_.model->config();
    const std::string table = !config.tied_output        ? "output.weight"
                              : config.shared_embeddings ? "embedding.weight"
                                                         : "target_embedding.weight";
    const float* W = testing::values_of(run_.model->parameters(), table);
    const float* b = config.output_bias ? testing::values_of(run_.model->parameters(), "output.bias") : nullptr;
    std::vector<std::vector<double>> rows;
    for (int64_t t = 0; t < saved.h.rows; t++) {
      std::vector<double> row;
      for (int64_t v = 0; v < config.target_vocab; v++) {
        double sum = b ? static_cast<double>(b[v]) : 0;
        for (int64_t i = 0; i < config.d_model; i++)
          sum += static_cast<double>(saved.h(t, i)) * static_cast<double>(W[v * config.d_model + i]);
        row.push_back(sum);
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  // log p of each token of `said`, given the start token and the tokens before it.
  std::vector<double> log_probabilities(const Ids& source, const Ids& said) const {
    Ids read = {run_.tokens.start};
    read.insert(read.end(), said.begin(), said.end() - 1);
    std::vector<double> result;
    for (const auto& row : logits(source, read)) {
      double sum = 0;
      const double most = *std::ranges::max_element(row);
      for (const double logit : row) sum += std::exp(logit - most);
      result.push_back(row[to_size(said[result.size()])] - most - std::log(sum));
    }
    return result;
  }

  // The tokens of greedy search, up to and including the end token, or `most` of them.
  Ids greedy(const Ids& source, size_t most) const {
    const TranslationTokens& t = run_.tokens;
    Ids read = {t.start};
    while (read.size() <= most) {
      std::vector<double> row = logits(source, read).back();
      for (const int32_t id : t.never) row[to_size(id)] = -INFINITY;
      if (static_cast<int64_t>(read.size()) <= t.min_length) row[to_size(t.end)] = -INFINITY;
      read.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
      if (read.back() == t.end) break;
    }
    return {read.begin() + 1, read.end()};
  }

 private:
  static TranslatorRun make(const std::string& source, const std::string& out) {
    import_model(source, out);
    return load_run<TranslatorRun>(out);
  }

  testing::TempDir directory_;
  TranslatorRun run_;
};

#define SKIP_WITHOUT_SHARED() \
  if (!std::filesystem::exists(kCases)) GTEST_SKIP() << "skipped: ../shared not present"

TEST(Marian, TokensHiddenStatesAndLogitsMatchTransformers) {
  SKIP_WITHOUT_SHARED();
  const ImportedRun imported(kCases + "marian");
  const json known = read_json(kCases + "marian/cases.json");
  for (const json& c : known["cases"]) {
    const Ids source = imported.source_ids(c["source"]);
    EXPECT_EQ(source, c["source_ids"].get<Ids>());
    testing::SpoiledArena arena;
    Context context{arena};
    Packed packed;
    packed.append(source);
    const Matrix<float> memory = imported.run().model->encode(packed, context);
    for (int64_t n = 0; n < 2; n++)
      for (int64_t i = 0; i < memory.cols; i++)
        EXPECT_NEAR(memory(n, i), c["encoder_last_hidden_state_first2"][n][i].get<double>(), 1e-5);
    const auto logits = imported.logits(source, c["decoder_input_ids"].get<Ids>());
    for (size_t t = 0; t < logits.size(); t++) {
      const json& top = c["logits_top20"][t];
      for (size_t k = 0; k < 20; k++)
        EXPECT_NEAR(logits[t][top["ids"][k].get<size_t>()], top["values"][k].get<double>(), 1e-5);
    }
  }
}

TEST(Marian, GreedySearchAndForcedScoresMatchTransformers) {
  SKIP_WITHOUT_SHARED();
  const ImportedRun imported(kCases + "marian");
  const json cases = read_json(kCases + "marian/cases.json");
  const size_t most = cases["max_new_tokens"];
  for (const json& c : cases["cases"]) {
    const Ids source = c["source_ids"].get<Ids>();
    Ids greedy = imported.greedy(source, most);
    if (greedy.size() == most) greedy.back() = imported.run().tokens.end;  // which generate() forces there
    EXPECT_EQ(greedy, c["greedy_ids"].get<Ids>());
    for (const json& hypothesis : c["beam4"]) {
      const Ids said = hypothesis["ids"].get<Ids>();
      double sum = 0;
      const std::vector<double> scores = imported.log_probabilities(source, said);
      for (size_t t = 0; t < scores.size(); t++)
        if (t + 1 < most) sum += scores[t];  // a forced end costs nothing
      EXPECT_NEAR(sum / static_cast<double>(said.size()), hypothesis["score"].get<double>(), 1e-4);
    }
  }
}

std::string joined(const json& tokens) {
  std::string text;
  for (const json& token : tokens) text += (text.empty() ? "" : " ") + token.get<std::string>();
  return text;
}

// Greedy search and the forced log-probabilities of one answer.
void expect_aren(const ImportedRun& imported, const std::string& source, const json& answer) {
  const Ids ids = imported.source_ids(source);
  Ids greedy = imported.greedy(ids, 40);
  const json& forced = answer["forced_token_logprobs_of_greedy"];
  const std::vector<double> found = imported.log_probabilities(ids, greedy);
  ASSERT_EQ(found.size(), forced["log_probs"].size());
  for (size_t t = 0; t < found.size(); t++) EXPECT_NEAR(found[t], forced["log_probs"][t].get<double>(), 1e-4);
  ASSERT_EQ(greedy.back(), imported.run().tokens.end);
  greedy.pop_back();
  EXPECT_EQ(imported.run().tokenizers.target.decode(greedy), joined(answer["greedy"]));
}

TEST(CTranslate2, GreedySearchScoresAndAttentionMatchCTranslate2) {
  SKIP_WITHOUT_SHARED();
  const ImportedRun imported(kCases + "aren/aren-transliteration");
  const Translator translator(imported.path());
  const json known = read_json(kCases + "aren/cases.json");
  for (const json& c : known["cases"]) {
    const std::string source = joined(c["source"]);
    expect_aren(imported, source, c);
    const AttentionMap map = translator.attend(source, joined(c["greedy"]));
    const AttentionKind& cross = map.kinds[2];
    const std::vector<float>& weights = cross.layers.back().front().weights;
    const json& wanted = c["cross_attention_greedy"];
    for (size_t t = 0; t < wanted.size(); t++)
      for (size_t s = 0; s < cross.columns.size(); s++)
        EXPECT_NEAR(weights[t * cross.columns.size() + s], wanted[t][s].get<double>(), 1e-4);
  }
}

TEST(CTranslate2, Int8WeightsGiveTheSameResultsAsFloat32) {
  SKIP_WITHOUT_SHARED();
  const ImportedRun imported(kCases + "aren/aren-transliteration-i8");
  const json known = read_json(kCases + "aren/cases.json");
  for (const json& c : known["cases"]) expect_aren(imported, joined(c["source"]), c["i8_as_float32"]);
}

TEST(CTranslate2, TransliterationsMatchItsOwnTests) {
  SKIP_WITHOUT_SHARED();
  for (const char* name : {"aren/aren-transliteration", "aren/aren-transliteration-i8"}) {
    const ImportedRun imported(kCases + name);
    const Translator translator(imported.path());
    TranslateOptions greedy;
    greedy.beam = 1;
    std::vector<std::string> texts;
    for (const Translation& t : translator.translate({"آ ت ز م و ن", "آ ت ش ي س و ن"}, greedy))
      texts.push_back(t.hypotheses.front().text);
    EXPECT_EQ(texts, (std::vector<std::string>{"a t z m o n", "a c h i s o n"}));
  }
}

}  // namespace
}  // namespace qkv
