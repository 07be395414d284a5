// Families of series in a registry of prometheus-cpp.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

namespace qkv {

inline auto& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline auto& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline auto& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// The number of series of a histogram: one for each bound and for infinity, the sum and the count.
inline size_t series_of(const prometheus::Histogram::BucketBoundaries& bounds) { return bounds.size() + 3; }

// Upper bounds of the buckets of a histogram.
using Bounds = prometheus::Histogram::BucketBoundaries;
inline const Bounds kWaitSeconds = {0.001, 0.005, 0.025, 0.1, 0.25, 1, 5, 15, 60};
inline const Bounds kStepSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5};
inline const Bounds kStepRows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

// Series of one model: counters and gauges, and those of histograms.
constexpr size_t kModelSeries = 21;
inline const size_t kModelHistograms = 2 * series_of(kWaitSeconds) + 2 * series_of(kStepSeconds) + series_of(kStepRows);

// The families of the series of models (serve/metrics/model_metrics.h).
struct ModelFamilies {
  explicit ModelFamilies(prometheus::Registry& r)
      : waiting(gauges(r, "qkv_requests_waiting", "Requests that wait for a model")),
        running(gauges(r, "qkv_requests_running", "Requests that a model computes")),
        waiting_tokens(gauges(r, "qkv_waiting_tokens", "Cost of the requests that wait, in tokens")),
        outcomes(counters(r, "qkv_requests_total", "Requests to a model, by how they ended")),
        reasons(counters(r, "qkv_requests_rejected_total", "Requests that were rejected, by reason")),
        stages(counters(r, "qkv_requests_cancelled_total", "Requests whose client left, by what they did then")),
        input_tokens(counters(r, "qkv_input_tokens_total", "Tokens of the texts of requests")),
        output_tokens(counters(r, "qkv_output_tokens_total", "Tokens that were generated")),
        cached_tokens(counters(r, "qkv_cached_tokens_total", "Input tokens whose keys and values were cached")),
        texts_cut(counters(r, "qkv_texts_cut_total", "Texts that were cut to the length of the model")),
        queue(histograms(r, "qkv_queue_seconds", "Time between the arrival of a request and its start")),
        first_token(histograms(r, "qkv_time_to_first_token_seconds",
                               "Time between the arrival of a request and its first token")),
        token(histograms(r, "qkv_time_per_token_seconds", "Time between two tokens of a text")),
        step(histograms(r, "qkv_step_seconds", "Time of a step, which extends all running texts by a token")),
        rows(histograms(r, "qkv_step_rows", "Rows of a step: hypotheses of all running texts")) {}

  template <class Metric>
  using Family = prometheus::Family<Metric>;
  Family<prometheus::Gauge>&waiting, &running, &waiting_tokens;
  Family<prometheus::Counter>&outcomes, &reasons, &stages, &input_tokens, &output_tokens, &cached_tokens, &texts_cut;
  Family<prometheus::Histogram>&queue, &first_token, &token, &step, &rows;
};

}  // namespace qkv
