// The counters of each model. All functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace qkv {

struct ModelFamilies;

// How a request ended.
enum class Outcome { done, failed, rejected, cancelled, expired };
constexpr std::array<std::string_view, 5> names_of(Outcome) {
  return {"done", "failed", "rejected", "cancelled", "expired"};
}

// Why a request was refused although it was valid.
enum class RejectReason { queue, tokens, client, deadline, memory, draining };
constexpr std::array<std::string_view, 6> names_of(RejectReason) {
  return {"queue", "tokens", "client", "deadline", "memory", "draining"};
}

// The stage of a request whose client left.
enum class CancelStage { waiting, running, sending };
constexpr std::array<std::string_view, 3> names_of(CancelStage) { return {"waiting", "running", "sending"}; }

// The counters of one model.
class ModelMetrics {
 public:
  // Models with the same label count together.
  ModelMetrics(ModelFamilies& families, const std::string& label, const std::string& histogram_label);

  // Change what waits and what runs. Negative numbers take away.
  void add_waiting(int64_t requests, int64_t tokens);
  void add_running(int64_t requests);

  // Count the end of a request. Each request calls exactly one of them, once.
  void done();
  void failed();
  void expired();
  void rejected(RejectReason reason);
  void cancelled(CancelStage stage);

  void add_input_tokens(int64_t tokens);
  void add_output_tokens(int64_t tokens);
  void add_cached_tokens(int64_t tokens);  // input tokens whose keys and values were cached
  void add_texts_cut(int64_t texts);       // texts that were shortened to the model's length

  void observe_queue(double seconds);        // between the arrival of a request and its start
  void observe_first_token(double seconds);  // between the arrival of a request and its first token
  void observe_token(double seconds);        // between two tokens
  void observe_step(double seconds, int64_t rows);

 private:
  prometheus::Gauge *waiting_, *running_, *waiting_tokens_;
  std::array<prometheus::Counter*, names_of(Outcome()).size()> outcomes_;
  std::array<prometheus::Counter*, names_of(RejectReason()).size()> reasons_;
  std::array<prometheus::Counter*, names_of(CancelStage()).size()> stages_;
  prometheus::Counter *input_tokens_, *output_tokens_, *cached_tokens_, *texts_cut_;
  prometheus::Histogram *queue_, *first_token_, *token_, *step_, *rows_;
};

}  // namespace qkv
