// qkv::analyse_heads: reads the data, and combines scores, ablations and importance in a report.
#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>

#include "analysis/heads/bootstrap.h"
#include "analysis/heads/collect_scores.h"
#include "analysis/heads/head_ablation.h"
#include "analysis/heads/head_importance.h"
#include "analysis/heads/translation_ablation.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "io/weights/quantized_weights.h"
#include "qkv/heads.h"
#include "text/lines.h"

namespace qkv {
namespace {

constexpr double kLeastStrength = 0.2;  // of a role
constexpr double kBroad = 0.8;          // share of the entropy of uniform attention
constexpr int64_t kLeastPairs = 20;     // of an agreement that is a role
constexpr int64_t kExampleTokens = 32;  // of a text that is an example, if there is one

std::vector<WordLinks> alignments_of(const HeadTexts& texts, const std::string& path) {
  std::vector<WordLinks> links;
  if (path.empty()) return links;
  const std::vector<std::string> lines = read_first_lines(path, texts.texts.back().line);
  for (const HeadText& text : texts.texts) {
    if (text.line > std::ssize(lines))
      fail("{}: must have a line for each of {} lines of the data (has {})", path, texts.texts.back().line,
           lines.size());
    links.push_back(read_alignment(lines[to_size(text.line) - 1], text.source.text, text.target.text,
                                   fmt::format("{}:{}", path, text.line)));
  }
  return links;
}

std::vector<WordLinks> trees_of(const HeadTexts& texts, TextSide HeadText::*side, const std::string& path) {
  if (path.empty()) return {};
  std::vector<DataLine> lines;
  for (const HeadText& text : texts.texts) lines.push_back({(text.*side).text, text.line});
  return read_trees(path, lines);
}

// Sets the scores of a head.
void set_scores(const CollectedScores& all, size_t p, HeadReport& report) {
  const size_t part = to_size(all.places[p].part);
  const auto add = [&](std::string_view name, const RowSum& sum, const RowSum& uniform) {
    if (sum.rows > 0) report.scores.push_back({std::string(name), sum.mean(), uniform.mean(), sum.rows});
  };
  for (size_t s = 0; s < token_scores().size(); s++)
    add(token_scores()[s].name, all.heads[p].token_scores[s], all.token_uniform[part][s]);
  for (size_t s = 0; s < shape_scores().size(); s++)
    add(shape_scores()[s].name, all.heads[p].shape_scores[s], all.shape_uniform[part][s]);
}

// Returns the strength of a token score of a head; nothing if it is defined for few rows.
std::optional<double> strength_of_score(const HeadReport& report, const TokenScore& score) {
  const HeadScore* found = find_role_score(report, score);
  return found ? std::optional(strength_of(found->value, *found->uniform)) : std::nullopt;
}

// Sets the role of a head: the score or agreement that lies farthest above what it is compared with.
void set_role(HeadReport& report) {
  const auto offer = [&](double strength, std::string role) {
    if (strength <= report.strength) return;
    report.strength = strength, report.role = std::move(role);
  };
  for (const TokenScore& score : token_scores())
    if (const auto strength = strength_of_score(report, score)) offer(*strength, std::string(score.role));
  for (const WordAgreement& agreement : report.agreements)
    if (agreement.pairs >= kLeastPairs)
      offer(strength_of(agreement.share, agreement.baseline),
            agreement.relation == "alignment" ? std::string(kAlignedWord)
                                              : fmt::format("{} ({})", agreement.relation, agreement.direction));
  if (report.strength >= kLeastStrength) return;
  const HeadScore* entropy = find_score(report, "entropy");
  report.role = entropy->value >= kBroad * *entropy->uniform ? "broad" : "mixed";
}

// ---- Examples

// Returns the texts on which a head's strongest token score is highest; short ones if there are any.
std::vector<size_t> best_texts(const HeadTexts& texts, const CollectedScores& all, size_t p, const HeadReport& report,
                               int64_t count) {
  if (count == 0) return {};
  size_t best = 0;
  double most = -1;
  for (size_t s = 0; s < token_scores().size(); s++)
    if (const auto strength = strength_of_score(report, token_scores()[s]); strength && *strength > most)
      most = *strength, best = s;
  std::vector<size_t> order;
  const auto is_short = [&](size_t t) { return texts.texts[t].tokens() <= 2 * kExampleTokens; };
  const bool any_short = std::ranges::any_of(std::views::iota(size_t{0}, texts.texts.size()), is_short);
  for (size_t t = 0; t < texts.texts.size(); t++)
    if (!any_short || is_short(t)) order.push_back(t);
  const std::vector<float>& values = all.heads[p].of_texts[best];
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t t) { return values[t]; });
  order.resize(std::min(order.size(), to_size(count)));
  return order;
}

// Returns the number of the text of a line of the data.
size_t text_of_line(const HeadTexts& texts, int64_t line) {
  const auto found = std::ranges::find(texts.texts, line, &HeadText::line);
  if (found == texts.texts.end())
    fail("show_line: no text of the data is at line {} (the last is at line {})", line, texts.texts.back().line);
  return static_cast<size_t>(found - texts.texts.begin());
}

void add_examples(const HeadTexts& texts, const CollectedScores& all, const HeadsOptions& options, Arena& arena,
                  std::vector<HeadReport>& reports) {
  std::map<size_t, std::vector<size_t>> heads_of_text;
  for (size_t p = 0; p < reports.size(); p++) {
    std::vector<size_t> chosen = best_texts(texts, all, p, reports[p], options.examples);
    if (options.show_line > 0) {
      const size_t shown = text_of_line(texts, options.show_line);
      if (std::ranges::find(chosen, shown) == chosen.end()) chosen.push_back(shown);
    }
    for (const size_t t : chosen) heads_of_text[t].push_back(p);
  }
  for (const auto& [text, heads] : heads_of_text) {
    const auto add = [&, &chosen = heads](size_t p, size_t t, Matrix<const float> A) {
      if (!std::ranges::binary_search(chosen, p)) return;
      const HeadText& of = texts.texts[t];
      const AttentionAxes axes{all.places[p].part, of};
      HeadExample example;
      example.line = of.line;
      example.rows = pieces_of(axes.part == AttentionPart::cross ? of.label_tokens : axes.rows().tokens);
      example.columns = pieces_of(axes.columns().tokens);
      for (int64_t i = 0; i < A.rows; i++) example.weights.insert(example.weights.end(), A.row(i), A.row(i) + A.cols);
      reports[p].examples.push_back(std::move(example));
    };
    visit_weights(texts, {&text, 1}, arena, add);
  }
}

// ---- Ablation

// Returns f of each text.
template <class F>
std::vector<double> column(const std::vector<TextLoss>& losses, const F& f) {
  std::vector<double> values;
  for (size_t t = 0; t < losses.size(); t++) values.push_back(f(t));
  return values;
}

void add_ablations(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, const HeadsOptions& options,
                   Arena& arena, HeadsReport& report) {
  std::vector<RemovedPart> parts = parts_of(texts.config(), options.ablate);
  if (options.replace_by == Replacement::mean) set_means(texts, batches, arena, parts);
  const AblationLosses losses = ablate(texts, batches, arena, parts);
  const std::vector<double> labels =
      column(losses.whole, [&](size_t t) { return static_cast<double>(losses.whole[t].labels); });
  const std::vector<double> ones(labels.size(), 1);
  const double count = std::accumulate(labels.begin(), labels.end(), 0.0);
  const Bootstrap bootstrap(std::ssize(labels), options.resamples, options.seed);
  report.loss = 0;
  for (const TextLoss& loss : losses.whole) *report.loss += loss.nll / count;
  const bool recommends = texts.kind == RunKind::recommender;
  if (recommends) report.ndcg10 = 0;
  for (const TextLoss& loss : losses.whole)
    if (recommends) *report.ndcg10 += loss.ndcg10 / static_cast<double>(ones.size());
  for (size_t p = 0; p < parts.size(); p++) {
    const std::vector<TextLoss>& without = losses.without[p];
    AblationReport ablation{name_of(parts[p].place), parts[p].place.layer + 1, parts[p].head + 1};
    ablation.loss =
        bootstrap.of(column(without, [&](size_t t) { return without[t].nll - losses.whole[t].nll; }), labels);
    if (recommends)
      ablation.ndcg10 =
          bootstrap.of(column(without, [&](size_t t) { return without[t].ndcg10 - losses.whole[t].ndcg10; }), ones);
    report.ablations.push_back(std::move(ablation));
  }
  if (!options.bleu) return;
  const BleuAblation bleu = ablate_bleu(report.run, texts, options, batches, arena, parts, bootstrap);
  report.bleu = bleu.whole;
  for (size_t p = 0; p < parts.size(); p++) report.ablations[p].bleu = bleu.without[p];
}

void check_bleu(const std::string& run, const HeadTexts& texts, const HeadsOptions& options) {
  if (options.ablate == Ablation::none || options.target.empty())
    fail("bleu must be false without {}", options.target.empty() ? "a target" : "ablate");
  if (is_quantized(texts.model->parameters()))
    fail("bleu must be false: {} is quantized, and its weights cannot be changed", run);
  check_removable(run, *texts.model, parts_of(texts.config(), options.ablate), options.replace_by);
}

// Throws Error for options that do not fit the run or its data, before anything is computed.
void check_options(const std::string& run, const HeadTexts& texts, const HeadsOptions& options) {
  const bool ablates = options.ablate != Ablation::none;
  if (ablates && !texts.has_loss)
    fail("ablate must be none: {} predicts no tokens (is {})", run, name_of(options.ablate));
  if (!ablates && options.replace_by != Replacement::zero)
    fail("replace_by must be zero without ablate (is {})", name_of(options.replace_by));
  if (options.bleu) check_bleu(run, texts, options);
  if (options.show_line > 0) text_of_line(texts, options.show_line);
  if (options.importance && !texts.has_loss) fail("importance: {} predicts no tokens, so that it has no loss", run);
  if (options.importance && is_quantized(texts.model->parameters()))
    fail("importance: {} is quantized, and quantized weights have no gradients", run);
  if ((ablates || options.importance) && texts.predictions() == 0)
    fail("{}: no token of the data is predicted", options.data);
}

}  // namespace

HeadsReport analyse_heads(const std::string& run, const HeadsOptions& options) {
  check_ranges(options);
  HeadTexts texts = read_head_texts(run, options);
  check_options(run, texts, options);
  const std::vector<std::vector<size_t>> batches = batches_of(texts, options.batch_tokens);
  const auto side_of_data = texts.config().has_encoder() ? &HeadText::source : &HeadText::target;
  const WordAgreements agreements(texts, alignments_of(texts, options.alignment),
                                  trees_of(texts, side_of_data, options.conllu),
                                  trees_of(texts, &HeadText::target, options.target_conllu));
  Arena arena;
  const CollectedScores all = collect_scores(texts, batches, arena, agreements, options.examples > 0);

  HeadsReport report{run, texts.kind, std::ssize(texts.texts)};
  report.own_translations = texts.own_translations;
  report.ablate = options.ablate, report.replace_by = options.replace_by;
  for (const HeadText& text : texts.texts) {
    report.source_tokens += std::ssize(text.source.ids);
    report.target_tokens += std::ssize(text.target.ids);
  }
  for (size_t p = 0; p < all.places.size(); p++) {
    HeadReport head;
    head.kind = name_of(all.places[p].part);
    head.layer = all.places[p].layer + 1, head.head = all.places[p].head + 1;
    set_scores(all, p, head);
    head.agreements = agreements.of_part(all.places[p].part, all.heads[p].hits);
    set_role(head);
    report.heads.push_back(std::move(head));
  }
  if (options.examples > 0 || options.show_line > 0) add_examples(texts, all, options, arena, report.heads);
  if (options.ablate != Ablation::none) add_ablations(texts, batches, options, arena, report);
  const bool importance =
      options.importance || (options.ablate == Ablation::heads && !is_quantized(texts.model->parameters()));
  if (importance) {
    const std::vector<double> values = head_importance(texts, batches, arena);
    for (size_t p = 0; p < values.size(); p++) report.heads[p].importance = values[p];
  }
  return report;
}

}  // namespace qkv
