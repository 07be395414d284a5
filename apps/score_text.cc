#include "score_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "commands.h"
#include "program/lines/jobs.h"
#include "qkv/error.h"
#include "signals.h"

namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(double value) { return std::isnan(value) ? ordered_json() : ordered_json(value); }

ordered_json figures(const qkv::TextScore& score, size_t bytes) {
  const double bits = -score.log_probability / std::numbers::ln2 / static_cast<double>(bytes);
  return {{"perplexity", number_or_null(score.perplexity())},
          {"log_probability", score.log_probability},
          {"tokens", score.tokens.size()},
          {"scored", score.scored},
          {"bits_per_byte", number_or_null(bits)}};
}

ordered_json token_json(const qkv::GeneratedToken& token) {
  ordered_json json = {{"text", token.text}, {"log_probability", number_or_null(token.log_probability)}};
  if (!token.alternatives.empty()) json["alternatives"] = ordered_json::array();
  for (const qkv::TokenAlternative& other : token.alternatives)
    json["alternatives"].push_back(
        {{"text", other.text}, {"log_probability", other.log_probability}, {"end", other.end}});
  return json;
}

// Scores the lines of a file, a window of them at a time.
template <class Write>
void score_lines(const ScoreTextOptions& options, Write&& write) {
  const qkv::Generator generator(options.run);
  listen_for_interrupts();
  qkv::LineReader lines(options.file, stop_if_interrupted);
  std::vector<std::string> texts;
  for (bool more = true; more;) {
    more = qkv::read_window(lines, texts);
    const std::vector<qkv::TextScore> scores = generator.score_all(texts, options.score);
    for (size_t i = 0; i < texts.size(); i++) write(texts[i], scores[i]);
    flush_out();
    stop_if_interrupted();
  }
}

}  // namespace

void score_perplexity(const ScoreTextOptions& options) {
  if (options.lines)
    return score_lines(options, [&](const std::string& text, const qkv::TextScore& score) {
      if (options.json) return write_json_line(figures(score, text.size()));
      print_out(fmt::format("{:.4f}\t{:.4f}\t{}\n", score.perplexity(), score.log_probability, score.scored));
    });
  const std::string text = read_input(options.file);
  const qkv::TextScore score = qkv::Generator(options.run).score(text, options.score);
  if (score.scored == 0)
    throw qkv::Error(
        fmt::format("score: {} has no token to score", options.file == "-" ? "standard input" : options.file));
  ordered_json json = {{"metric", "perplexity"}};
  json.update(figures(score, text.size()));
  if (options.json) return write_json_line(json);
  print_out(fmt::format("perplexity = {:.4f} ({} tokens, {:.4f} nats per token, {:.4f} bits per byte)\n",
                        score.perplexity(), score.scored, -score.log_probability / static_cast<double>(score.scored),
                        -score.log_probability / std::numbers::ln2 / static_cast<double>(text.size())));
}

void score_tokens(const ScoreTextOptions& options) {
  score_lines(options, [](const std::string& text, const qkv::TextScore& score) {
    ordered_json json = {
        {"text", text}, {"log_probability", score.log_probability}, {"perplexity", number_or_null(score.perplexity())}};
    json["tokens"] = ordered_json::array();
    for (const qkv::GeneratedToken& token : score.tokens) json["tokens"].push_back(token_json(token));
    write_json_line(json);
  });
}
