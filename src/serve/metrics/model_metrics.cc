#include "serve/metrics/model_metrics.h"

#include "core/to_size.h"
#include "serve/metrics/metric_families.h"

namespace qkv {
namespace {

template <class Enum>
auto counters_of(prometheus::Family<prometheus::Counter>& family, const std::string& model, const char* label) {
  std::array<prometheus::Counter*, names_of(Enum()).size()> result;
  for (size_t i = 0; i < result.size(); i++)
    result[i] = &family.Add({{"model", model}, {label, std::string(names_of(Enum())[i])}});
  return result;
}

}  // namespace

ModelMetrics::ModelMetrics(ModelFamilies& f, const std::string& label, const std::string& histogram_label) {
  const prometheus::Labels model = {{"model", label}}, histogram = {{"model", histogram_label}};
  waiting_ = &f.waiting.Add(model);
  running_ = &f.running.Add(model);
  waiting_tokens_ = &f.waiting_tokens.Add(model);
  outcomes_ = counters_of<Outcome>(f.outcomes, label, "outcome");
  reasons_ = counters_of<RejectReason>(f.reasons, label, "reason");
  stages_ = counters_of<CancelStage>(f.stages, label, "stage");
  input_tokens_ = &f.input_tokens.Add(model);
  output_tokens_ = &f.output_tokens.Add(model);
  cached_tokens_ = &f.cached_tokens.Add(model);
  texts_cut_ = &f.texts_cut.Add(model);
  queue_ = &f.queue.Add(histogram, kWaitSeconds);
  first_token_ = &f.first_token.Add(histogram, kWaitSeconds);
  token_ = &f.token.Add(histogram, kStepSeconds);
  step_ = &f.step.Add(histogram, kStepSeconds);
  rows_ = &f.rows.Add(histogram, kStepRows);
}

void ModelMetrics::add_waiting(int64_t requests, int64_t tokens) {
  waiting_->Increment(static_cast<double>(requests));
  waiting_tokens_->Increment(static_cast<double>(tokens));
}
void ModelMetrics::add_running(int64_t requests) { running_->Increment(static_cast<double>(requests)); }

void ModelMetrics::done() { outcomes_[to_size(Outcome::done)]->Increment(); }
void ModelMetrics::failed() { outcomes_[to_size(Outcome::failed)]->Increment(); }
void ModelMetrics::expired() { outcomes_[to_size(Outcome::expired)]->Increment(); }
void ModelMetrics::rejected(RejectReason reason) {
  outcomes_[to_size(Outcome::rejected)]->Increment();
  reasons_[to_size(reason)]->Increment();
}
void ModelMetrics::cancelled(CancelStage stage) {
  outcomes_[to_size(Outcome::cancelled)]->Increment();
  stages_[to_size(stage)]->Increment();
}

void ModelMetrics::add_input_tokens(int64_t tokens) { input_tokens_->Increment(static_cast<double>(tokens)); }
void ModelMetrics::add_output_tokens(int64_t tokens) { output_tokens_->Increment(static_cast<double>(tokens)); }
void ModelMetrics::add_cached_tokens(int64_t tokens) { cached_tokens_->Increment(static_cast<double>(tokens)); }
void ModelMetrics::add_texts_cut(int64_t texts) { texts_cut_->Increment(static_cast<double>(texts)); }

void ModelMetrics::observe_queue(double seconds) { queue_->Observe(seconds); }
void ModelMetrics::observe_first_token(double seconds) { first_token_->Observe(seconds); }
void ModelMetrics::observe_token(double seconds) { token_->Observe(seconds); }
void ModelMetrics::observe_step(double seconds, int64_t rows) {
  step_->Observe(seconds);
  rows_->Observe(static_cast<double>(rows));
}

}  // namespace qkv
