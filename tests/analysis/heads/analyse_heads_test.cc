// Reports of runs of each kind, and runs without some of their heads.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/heads/head_ablation.h"
#include "analysis/heads/translation_ablation.h"
#include "qkv/evaluate.h"
#include "qkv/generator.h"
#include "qkv/heads.h"
#include "qkv/recommender.h"
#include "qkv/text.h"
#include "qkv/translator.h"
#include "tests/analysis/heads/head_cases.h"
#include "tests/decode/random_run.h"
#include "tests/support/byte_pieces.h"
#include "tests/support/errors.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempDir;

class AnalyseHeads : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    testing::spill(directory_ / name, text);
    return directory_ / name;
  }
  std::string source() { return file("source", "the dog sees the cat\na man reads a book .\nthe old cat sleeps\n"); }
  std::string target() { return file("target", "the cat sees the dog\na man sleeps .\nhe reads\n"); }
  std::string translator() { return testing::make_random_run(directory_ / "translator"); }

  std::string encoder(bool predicts) {
    ModelConfig config = testing::small_config();
    config.decoder_layers = config.target_vocab = 0;
    config.shared_embeddings = false;
    config.tied_output = predicts;
    config.token_head = predicts ? TokenHead::output : TokenHead::none;
    TokenizerSpec spec;
    spec.pieces = {"[UNK]", "[CLS]", "[SEP]", "[MASK]", "sleep", "##ing", "dog", "the", "##s"};
    spec.model = WordPieceModel{};
    config.source_vocab = std::ssize(spec.pieces);
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 1);
    const RunDirectory run(directory_ / (predicts ? "masked" : "encoder"));
    const EmbeddingConfig embedding{.unit = TextUnit::word_pieces, .start = "[CLS]", .end = "[SEP]"};
    create_run(run, EncoderRun{config, embedding, TextCodec::of_tokenizer(HuggingFaceTokenizer(spec, "spec"))},
               [&](const RunDirectory& partial) {
                 save_weights(partial.model(), model.parameters(), model.parameters().values());
               });
    return run.root();
  }

  TempDir directory_;
};

void check_report(const HeadsReport& report, int64_t heads) {
  EXPECT_EQ(std::ssize(report.heads), heads);
  for (const HeadReport& head : report.heads) {
    EXPECT_FALSE(head.role.empty());
    EXPECT_LE(head.strength, 1);
    for (const HeadScore& score : head.scores) {
      EXPECT_GT(score.rows, 0);
      EXPECT_GE(score.value, 0);
    }
  }
  const auto json = nlohmann::json::parse(heads_to_json(report));
  EXPECT_EQ(json["heads"].size(), report.heads.size());
  const HeadScore& score = report.heads[0].scores[1];
  EXPECT_EQ(json["heads"][0]["scores"][score.name]["value"], score.value);
  const HeadReport& first = report.heads[0];
  const bool named = first.role != "broad" && first.role != "mixed";
  const std::string line = "     1   " + first.role + (named ? fmt::format(" {:.2f}", first.strength) : "");
  expect_contains(heads_to_text(report), "\n" + line);
  const std::string html = heads_to_html(report), begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = html.find(begin);
  ASSERT_NE(at, std::string::npos);
  const size_t end = html.find("</script>", at);
  const auto of_page = nlohmann::json::parse(html.substr(at + begin.size(), end - at - begin.size()));
  EXPECT_EQ(of_page["heads"][0]["scores"][score.name]["value"], score.value);
}

// Checks that no head of a report is further above the baseline of a relation than the best one, and its loss.
void check_best_heads(const HeadsReport& report) {
  const std::vector<BestHead> best = best_heads(report);
  const auto find = [&](const std::string& relation) {
    const auto found = std::ranges::find(best, relation, &BestHead::relation);
    EXPECT_NE(found, best.end()) << relation;
    return *found;
  };
  const BestHead before = find("token before"), aligned = find("aligned word");
  EXPECT_EQ(before.direction, "");
  EXPECT_EQ(aligned.direction, "target to source");
  EXPECT_EQ(aligned.count, 3);
  const auto strength = [](double value, double baseline) { return (value - baseline) / (1 - baseline); };
  for (const HeadReport& head : report.heads) {
    const auto score = std::ranges::find(head.scores, "previous", &HeadScore::name);
    if (score != head.scores.end()) {
      EXPECT_LE(strength(score->value, *score->uniform), strength(before.value, before.baseline));
    }
    for (const WordAgreement& agreement : head.agreements) EXPECT_LE(agreement.share, aligned.value);
  }
  for (const BestHead& head : best) {
    ASSERT_TRUE(head.loss);
    const auto of_head = [&](const AblationReport& ablation) {
      return ablation.layer == head.layer && ablation.head == head.head &&
             ablation.part == (head.kind == "cross" ? "decoder cross-attention" : head.kind + " self-attention");
    };
    const auto ablation = std::ranges::find_if(report.ablations, of_head);
    ASSERT_NE(ablation, report.ablations.end());
    EXPECT_EQ(head.loss->value, ablation->loss.value);
  }
  const auto json = nlohmann::json::parse(heads_to_json(report))["best"];
  ASSERT_EQ(json.size(), best.size());
  EXPECT_EQ(json[0]["relation"], best[0].relation);
  EXPECT_EQ(json[0]["loss"]["value"], best[0].loss->value);
}

TEST_F(AnalyseHeads, ATranslatorHasThreeKindsOfAttention) {
  HeadsOptions options{.data = source(), .target = target()};
  options.alignment = file("alignment", "0-0 4-1\n\n0-0\n");
  options.ablate = Ablation::heads;
  options.examples = 2;
  const HeadsReport report = analyse_heads(translator(), options);
  EXPECT_EQ(std::ssize(report.heads), 3 * 2 * 2);
  EXPECT_EQ(report.texts, 3);
  EXPECT_FALSE(report.own_translations);
  EXPECT_EQ(report.ablations.size(), report.heads.size());
  for (const AblationReport& ablation : report.ablations) {
    EXPECT_LE(ablation.loss.low, ablation.loss.value);
    EXPECT_GE(ablation.loss.high, ablation.loss.value);
  }
  for (const HeadReport& head : report.heads) {
    ASSERT_TRUE(head.importance);
    ASSERT_EQ(head.examples.size(), 2u);
    EXPECT_EQ(head.examples[0].weights.size(), head.examples[0].rows.size() * head.examples[0].columns.size());
    ASSERT_EQ(head.agreements.size(), head.kind == "cross" ? 1u : 0u);
    for (const WordAgreement& agreement : head.agreements) EXPECT_EQ(agreement.pairs, 3);
  }
  check_best_heads(report);
  const std::string text = heads_to_text(report);
  for (const char* part : {"encoder attention", "decoder attention", "cross attention", "aligned word", "by gradient"})
    expect_contains(text, part);
}

TEST_F(AnalyseHeads, ALineIsShownForAllHeads) {
  HeadsOptions options{.data = source(), .target = target()};
  options.show_line = 2;
  const std::string run = translator();
  for (const int64_t examples : {0, 3}) {
    options.examples = examples;
    for (const HeadReport& head : analyse_heads(run, options).heads) {
      EXPECT_EQ(std::ssize(head.examples), std::max<int64_t>(examples, 1));
      EXPECT_EQ(std::ranges::count(head.examples, 2, &HeadExample::line), 1);
    }
  }
  options.show_line = 4;
  EXPECT_EQ(error_of([&] { analyse_heads(run, options); }),
            "show_line: no text of the data is at line 4 (the last is at line 3)");
}

// Returns the loss per token of translations by Translator::score.
double loss_by_score(const std::string& run, const std::vector<std::string>& sources,
                     const std::vector<std::string>& targets) {
  double sum = 0, count = 0;
  TranslateOptions options;
  options.sentences = Sentences::line, options.protected_parts = ProtectedParts::none;
  const std::vector<Target> texts(targets.begin(), targets.end());
  for (const Translation& translation : Translator(run).score(sources, texts, options))
    for (const double score : translation.hypotheses[0].token_scores) sum -= score, count++;
  return sum / count;
}

TEST_F(AnalyseHeads, RemovingAHeadFromTheRunCostsWhatTheReportSays) {
  const std::string run = translator();
  HeadsOptions options{.data = source(), .target = target()};
  options.ablate = Ablation::heads;
  const HeadsReport report = analyse_heads(run, options);
  const std::vector<std::string> sources = read_lines(source()), targets = read_lines(target());
  const double whole = loss_by_score(run, sources, targets);
  EXPECT_NEAR(*report.loss, whole, 1e-4);
  const auto loaded = load_run<TranslatorRun>(run);
  const ModelConfig& config = loaded.config;
  double largest = 0;
  for (size_t p = 0; p < report.heads.size(); p++) {
    Transformer<float> without(config);
    std::ranges::copy(loaded.model->parameters().values(), without.parameters().values().begin());
    remove_part(without, parts_of(config, Ablation::heads)[p]);
    const RunDirectory zeroed(directory_ / ("zeroed" + std::to_string(p)));
    create_run(zeroed, loaded, [&](const RunDirectory& partial) {
      save_weights(partial.model(), without.parameters(), without.parameters().values());
    });
    const double change = loss_by_score(zeroed.root(), sources, targets) - whole;
    EXPECT_NEAR(report.ablations[p].loss.value, change, 2e-4);  // the tolerance of head_ablation_test.cc
    largest = std::max(largest, std::abs(change));
  }
  EXPECT_GT(largest, 1e-2);
}

TEST_F(AnalyseHeads, BleuIsThatOfGreedyTranslations) {
  TranslateOptions greedy;
  greedy.beam = 1, greedy.sentences = Sentences::line, greedy.protected_parts = ProtectedParts::none;
  greedy.source_prefix = "a man ";  // that of decoding.json
  const std::vector<std::string> sources = read_lines(source());
  std::string run, lines;
  std::vector<std::string> translations, references;
  for (uint64_t seed = 1; std::ranges::count(lines, ' ') < 12; seed++) {  // until there are several words
    ASSERT_LT(seed, 100u);
    run = testing::make_random_run(directory_ / ("seed" + std::to_string(seed)), {}, seed);
    testing::set_source_prefix(run, greedy.source_prefix);
    const Translator translator(run);
    translations.clear(), references.clear(), lines.clear();
    greedy.max_length = 0;
    for (const Translation& t : translator.translate(sources, greedy)) translations.push_back(t.text());
    greedy.max_length = 12;  // references are beginnings of the translations
    for (const Translation& t : translator.translate(sources, greedy)) references.push_back(t.text());
    for (const std::string& text : references) lines += text + "\n";
  }
  HeadsOptions options{.data = source(), .target = file("references", lines)};
  options.ablate = Ablation::sublayers, options.bleu = true;
  const HeadsReport report = analyse_heads(run, options);
  ASSERT_TRUE(report.bleu);
  EXPECT_DOUBLE_EQ(*report.bleu, bleu(translations, references).score);
  EXPECT_GT(*report.bleu, 0);
  for (const AblationReport& ablation : report.ablations) {
    ASSERT_TRUE(ablation.bleu);
    EXPECT_LE(ablation.bleu->low, ablation.bleu->high);
  }
  expect_contains(heads_to_text(report), fmt::format("nats; BLEU {:.2f})", *report.bleu));
  options.target.clear();
  EXPECT_EQ(error_of([&] { analyse_heads(run, options); }), "bleu must be false without a target");
}

TEST_F(AnalyseHeads, WithoutTargetsTheModelTranslates) {
  const HeadsReport report = analyse_heads(translator(), {.data = source()});
  EXPECT_TRUE(report.own_translations);
  EXPECT_GT(report.target_tokens, 0);
  EXPECT_FALSE(report.loss);
}

TEST_F(AnalyseHeads, ALanguageModelIsAnalysedOnLines) {
  HeadsOptions options{.data = file("text", "The cat sat on the mat\nthe the\n")};
  options.ablate = Ablation::attention, options.replace_by = Replacement::mean;
  const HeadsReport report = analyse_heads(testing::make_language_run(directory_ / "lm"), options);
  check_report(report, 4);
  EXPECT_EQ(report.ablations.size(), 2u);
  EXPECT_EQ(report.target_tokens, 1 + 22 + 1 + 7);
  double sum = 0;
  const Generator generator(directory_ / "lm");
  for (const char* line : {"The cat sat on the mat", "the the"}) {
    std::vector<int32_t> ids = generator.with_start(generator.encode(line));
    ids.push_back(256);
    for (const GeneratedToken& token : generator.score(ids))
      if (!std::isnan(token.log_probability)) sum -= token.log_probability;
  }
  EXPECT_NEAR(*report.loss, sum / (23 + 8), 1e-3);  // the end token has a log-probability of about −100
}

TEST_F(AnalyseHeads, AnEncoderHasALossIfItPredictsTokens) {
  const std::string data = file("text", "the dogs sleep\nthe dog sleeping\n");
  HeadsOptions options{.data = data};
  check_report(analyse_heads(encoder(false), options), 4);
  options.ablate = Ablation::sublayers;
  EXPECT_EQ(error_of([&] { analyse_heads(directory_ / "encoder", options); }),
            fmt::format("ablate must be none: {} predicts no tokens (is sublayers)", directory_ / "encoder"));
  const HeadsReport report = analyse_heads(encoder(true), options);
  EXPECT_EQ(report.ablations.size(), 4u);
}

TEST_F(AnalyseHeads, ARecommenderPredictsTheLastItemOfItsLog) {
  const std::string run = directory_ / "films";
  testing::create_recommender(run, testing::small_log(30));
  HeadsOptions options;
  options.ablate = Ablation::heads;
  const HeadsReport report = analyse_heads(run, options);
  check_report(report, 4);
  EXPECT_EQ(report.texts, 2);  // eve has one event
  EXPECT_EQ(report.target_tokens, 6 + 2);
  ASSERT_TRUE(report.ndcg10);
  for (const AblationReport& ablation : report.ablations) EXPECT_TRUE(ablation.ndcg10);
}

TEST_F(AnalyseHeads, WrongFilesAndOptionsAreOneLine) {
  const std::string run = translator(), lm = testing::make_language_run(directory_ / "lm"), data = source();
  const auto error = [](const std::string& directory, const HeadsOptions& options) {
    return error_of([&] { analyse_heads(directory, options); });
  };
  expect_contains(error(run, {}), "data: ");
  expect_contains(error(run, {.data = data, .target = file("short", "a\n")}), "must have as many lines");
  expect_contains(error(run, {.data = data, .alignment = data}), "target must be set");
  expect_contains(error(lm, {.data = data, .target = data}), "is no translator");
  expect_contains(error(run, {.data = file("empty", "")}), "has no lines");
  expect_contains(error(run, {.data = file("blank", "\n")}), ":1: is empty");
  expect_contains(error(run, {.data = data, .target = target(), .conllu = file("t", "x\n")}), "10 fields");
  expect_contains(error(lm, {.data = data, .examples = 101}), "examples must be between 0 and 100");
  HeadsOptions importance{.data = data};
  importance.importance = true;
  quantize_run(lm, directory_ / "int8");
  expect_contains(error(directory_ / "int8", importance), "is quantized");
  importance.data = file("blank", "\n\n");
  EXPECT_EQ(error(encoder(true), importance), importance.data + ": no token of the data is predicted");
  EXPECT_EQ(error(encoder(false), importance),
            fmt::format("importance: {} predicts no tokens, so that it has no loss", directory_ / "encoder"));
  check_report(analyse_heads(directory_ / "int8", {.data = data}), 4);
}

// Files and the names of runs may hold what controls a terminal, and wide characters.
TEST(HeadsText, TextOfFilesIsShownInColumns) {
  HeadsReport report{"runs/\x1b[31mred", RunKind::encoder, 1};
  for (const char* role : {"主語 (dependent to head)", "first token"}) {
    HeadReport head{"encoder", 1, std::ssize(report.heads) + 1, role, 0.5};
    head.agreements.push_back({"\x1b[2J主語", "dependent to head", 30, 0.75, 0.25, -1});
    report.heads.push_back(head);
  }
  const std::string text = heads_to_text(report);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  expect_contains(text, "runs/<0x1B>[31mred: encoder");
  expect_contains(text, "\n  head   1" + std::string(30, ' ') + "2\n");
  expect_contains(text, "\n     1   主語 (dependent to head) 0.50  first token 0.50\n");
  expect_contains(text, "\n  <0x1B>[2J主語, dependent to head  0.750   0.250 offset -1       encoder layer 1 head 1\n");
}

// Adds a head with one score, and one agreement if its pairs are not 0.
void add_head(HeadsReport& report, const HeadScore& score, const WordAgreement& agreement) {
  HeadReport head{"encoder", 1, std::ssize(report.heads) + 1, "mixed"};
  head.scores = {score, {"entropy", 1.0, 1.0, 100}};
  if (agreement.pairs > 0) head.agreements.push_back(agreement);
  report.heads.push_back(std::move(head));
}

TEST(BestHeads, TheScoreDecidesIfAnOffsetIsAlwaysRight) {
  HeadsReport report{"run", RunKind::encoder, 1};
  for (const double share : {0.25, 0.75, 0.5})
    add_head(report, {"previous", 0.5, 0.1, 100}, {"amod", "dependent to head", 9, share, 1.0, 1});
  EXPECT_EQ(best_heads(report).back().head, 2);
  expect_contains(heads_to_text(report),
                  "\n  amod, dependent to head  0.750-  1.000 offset +1       encoder layer 1 head 2\n");
}

TEST(BestHeads, AreFarthestAboveTheBaselineAmongScoresOfEnoughRows) {
  HeadsReport report{"run", RunKind::encoder, 1};
  add_head(report, {"previous", 0.5, 0.1, 100}, {"nsubj", "dependent to head", 9, 0.25, 0.5, 1});
  add_head(report, {"previous", 0.6, 0.1, 25}, {"nsubj", "dependent to head", 9, 0.75, 0.5, 1});
  add_head(report, {"previous", 0.9, 0.1, 24}, {"obj", "head to dependent", 10, 0.25, 0.5, -2});
  const std::vector<BestHead> best = best_heads(report);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].relation, "token before");  // 24 of 100 rows are too few
  EXPECT_EQ(best[0].head, 2);
  EXPECT_EQ(best[0].count, 25);
  EXPECT_FALSE(best[0].offset || best[0].loss);
  EXPECT_EQ(best[1].relation, "obj");  // more pairs
  EXPECT_EQ(best[1].offset, -2);
  EXPECT_EQ(best[2].relation, "nsubj");
  EXPECT_EQ(best[2].head, 2);
  EXPECT_EQ(best[2].value, 0.75);
  expect_contains(heads_to_text(report),
                  "\n  nsubj, dependent to head  0.750   0.500 offset +1       encoder layer 1 head 2\n");
}

// ---- Pruning

// Sets the heads that a pruned run lacks to zero in W_O.
void remove_heads(Transformer<float>& model, const HeadsReport& report, int64_t count) {
  const int64_t H = model.config().attention.heads, V = model.config().attention.value_width;
  for (size_t p = 0; p < report.heads.size(); p += to_size(H)) {
    std::vector<int64_t> order(to_size(H));
    for (int64_t h = 0; h < H; h++) order[to_size(h)] = h;
    std::ranges::sort(order, {}, [&](int64_t h) { return *report.heads[p + to_size(h)].importance; });
    const HeadReport& head = report.heads[p];
    const std::string name = (head.kind == "encoder" ? "encoder.layers." : "decoder.layers.") +
                             std::to_string(head.layer - 1) +
                             (head.kind == "cross" ? ".cross_attention" : ".self_attention") + ".output.weight";
    float* W = testing::values_of(model.parameters(), name);
    for (int64_t o = 0; o < model.config().d_model; o++)
      for (int64_t k = 0; k < count; k++) std::fill_n(W + (o * H + order[to_size(k)]) * V, V, 0.0f);
  }
}

TEST_F(AnalyseHeads, APrunedRunEqualsTheRunWithItsHeadsAtZero) {
  const std::string run = translator();
  HeadsOptions options{.data = source(), .target = target()};
  options.importance = true;
  const HeadsReport report = analyse_heads(run, options);
  const std::string out = directory_ / "pruned";
  const PruneReport pruned = prune_heads(run, report, 1, out);
  EXPECT_LT(pruned.parameters, pruned.parameters_before);
  EXPECT_EQ(pruned.removed.size(), 6u);
  EXPECT_EQ(inspect(out).model.attention.heads, 1);
  auto whole = load_run<TranslatorRun>(run);
  Transformer<float> without(whole.config);  // the weights of a run are read-only
  std::ranges::copy(whole.model->parameters().values(), without.parameters().values().begin());
  remove_heads(without, report, 1);
  const RunDirectory zeroed(directory_ / "zeroed");
  create_run(zeroed, whole, [&](const RunDirectory& partial) {
    save_weights(partial.model(), without.parameters(), without.parameters().values());
  });
  const Translator a(out), b(zeroed.root());
  const std::vector<std::string> lines = {"the dog sees the cat", "a man reads a book ."};
  const TokenRows x = a.logits(lines, {"he sleeps", "the old cat"}), y = b.logits(lines, {"he sleeps", "the old cat"});
  ASSERT_EQ(x.values.size(), y.values.size());
  // Products of other widths are summed in another order: some roundings of logits of about 10.
  for (size_t i = 0; i < x.values.size(); i++) EXPECT_NEAR(x.values[i], y.values[i], 1e-4);
  const auto record = nlohmann::json::parse(testing::slurp(out + "/pruned_heads.json"));
  EXPECT_EQ(record["heads"], 2);
  EXPECT_EQ(record["removed"]["decoder.layers.1.cross_attention"].size(), 1u);
  EXPECT_EQ(error_of([&] { prune_heads(run, report, 1, out); }), out + ": already exists");
  EXPECT_EQ(error_of([&] { check_prune(run, 1, out); }), out + ": already exists");
  EXPECT_EQ(error_of([&] { check_prune(run, 2, out + "2"); }),
            fmt::format("count must be between 1 and 1, one less than the heads of {} (is 2)", run));
  EXPECT_EQ(error_of([&] { prune_heads(run, {}, 1, out + "2"); }), "report must have 12 heads (has 0)");
  check_prune(run, 1, out + "2");
  EXPECT_FALSE(std::filesystem::exists(out + "2"));
}

TEST_F(AnalyseHeads, ModelsThatCannotLoseHeadsSayWhy) {
  size_t refused = 0, number = 0;
  for (const ModelConfig& config : testing::language_configs(257, 40)) {
    Transformer<float> model(config);
    testing::randomize(model.parameters(), 3);
    const RunDirectory run(directory_ / ("lm" + std::to_string(number++)));
    create_run(run, LanguageRun{config, {.unit = TextUnit::bytes}, {}}, [&](const RunDirectory& partial) {
      save_weights(partial.model(), model.parameters(), model.parameters().values());
    });
    HeadsOptions options{.data = source()};
    options.importance = true;
    const HeadsReport report = analyse_heads(run.root(), options);
    const std::string out = run.root() + "-pruned";
    const std::string error = testing::error_if_any([&] { prune_heads(run.root(), report, 1, out); });
    const bool cannot = config.positions == Positions::alibi || config.attention.relative_buckets > 0 ||
                        config.attention.key_value_heads > 0 || config.attention.query_key_norm_over_heads;
    EXPECT_EQ(!error.empty(), cannot) << error;
    EXPECT_EQ(testing::error_if_any([&] { check_prune(run.root(), 1, run.root() + "-other"); }), error);
    refused += cannot;
    if (cannot) continue;
    remove_heads(model, report, 1);
    const auto pruned = load_run<LanguageRun>(out);
    Arena arena;
    const Batch batch = testing::random_batch(config, std::vector<int64_t>{5, 9}, std::vector<int64_t>{7, 3}, 1);
    Context c{arena}, d{arena};
    EXPECT_NEAR(pruned.model->loss(batch, 0, c).nll, model.loss(batch, 0, d).nll, 1e-3);
  }
  EXPECT_EQ(refused, 4u);
}

}  // namespace
}  // namespace qkv
