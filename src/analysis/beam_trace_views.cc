// The steps of a beam search as text for a terminal, and as JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/table_text.h"
#include "core/to_size.h"
#include "qkv/beam_trace.h"
#include "text/visible.h"

namespace qkv {
namespace {

constexpr size_t kTokenColumns = kTableLine - 27, kScoreColumns = 14;  // after the columns of numbers, and "… "

// The tokens of a hypothesis of a step; the first ones are left out if they do not fit.
std::string tokens_of(const BeamTrace& trace, size_t step, const TracedHypothesis& hypothesis) {
  std::string text = visible(hypothesis.token);
  const size_t columns = kTokenColumns - (hypothesis.score ? kScoreColumns : 0);
  int64_t parent = hypothesis.parent;
  while (step > 0) {
    const TracedHypothesis& before = trace.steps[--step].live[to_size(parent)];
    std::string longer = visible(before.token) + " " + text;
    if (width(longer) > columns) return "… " + text;
    text = std::move(longer);
    parent = before.parent;
  }
  return text;
}

nlohmann::ordered_json json_of(const std::vector<TracedHypothesis>& hypotheses) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TracedHypothesis& h : hypotheses)
    list.push_back({{"token", h.token},
                    {"parent", h.parent},
                    {"token_log_probability", h.token_log_probability},
                    {"log_probability", h.log_probability},
                    {"score", h.score ? nlohmann::ordered_json(*h.score) : nlohmann::ordered_json()}});
  return list;
}

}  // namespace

std::string beam_to_text(const BeamTrace& trace) {
  std::string text = fmt::format(
      "Beam search with {} hypothes{}. The score of one that has ended is log p / tokens^{:g}.\n"
      "from: the number of the hypothesis, in the step before, that it continues\n",
      trace.beam, trace.beam == 1 ? "is" : "es", trace.length_penalty);
  for (size_t s = 0; s < trace.steps.size(); s++) {
    text += fmt::format("\nstep {:<7}log p  from  tokens\n", s + 1);
    const auto line = [&](const std::string& name, const TracedHypothesis& h) {
      const std::string from = s > 0 ? std::to_string(h.parent + 1) : "";
      text += trimmed_line(fmt::format("  {:<6}{:>9.3f}  {:>4}  {}{}", name, h.log_probability, from,
                                       tokens_of(trace, s, h), h.score ? fmt::format("  score {:.3f}", *h.score) : ""));
    };
    for (const TracedHypothesis& h : trace.steps[s].ended) line("ended", h);
    for (size_t i = 0; i < trace.steps[s].live.size(); i++) line(std::to_string(i + 1), trace.steps[s].live[i]);
  }
  return text + "\ntranslation: " + in_one_line(trace.translation) + "\n";
}

std::string beam_to_json(const BeamTrace& trace) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const TracedStep& step : trace.steps)
    steps.push_back({{"live", json_of(step.live)}, {"ended", json_of(step.ended)}});
  const nlohmann::ordered_json json = {{"source", trace.source},
                                       {"translation", trace.translation},
                                       {"beam", trace.beam},
                                       {"length_penalty", trace.length_penalty},
                                       {"steps", std::move(steps)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace qkv
