#include "serve/engine/warm_up.h"

#include <future>

namespace qkv {
namespace {

// The end of a request, which its event sets.
class WarmUpEnd {
 public:
  std::function<void()> event() {
    return [end = end_] { end->set_value(); };
  }
  void wait() { end_->get_future().wait(); }

 private:
  const std::shared_ptr<std::promise<void>> end_ = std::make_shared<std::promise<void>>();
};

class WarmUpJob : public BatchJob {
 public:
  explicit WarmUpJob(const ServedModel& model) : model_(model) {}

  void compute(std::span<BatchJob* const>) override {
    if (model_.recommender) model_.recommender->recommend({model_.recommender->items().front()});
    if (model_.embedder) model_.embedder->embed({"a"});
    if (model_.classifier) model_.classifier->classify({{"a"}});
  }

 private:
  const ServedModel& model_;
};

void translate_once(ServedModel& model) {
  TranslateOptions options;
  options.beam = 1;
  options.max_length = 4;
  if (const std::vector<std::string> codes = model.translator->languages(); !codes.empty()) {
    options.source_language = codes.front();
    options.target_language = codes.back();
  }
  ModelLane& lane = *model.take_lane(0);
  WarmUpEnd end;
  TranslationLoop::Events events;
  events.on_done = [event = end.event()](Translation&&) { event(); };
  events.on_error = [event = end.event()](const std::exception_ptr&) { event(); };
  lane.translations->add(lane.translations->prepare({"a"}, options), std::move(events));
  model.wake(lane);
  end.wait();
}

void generate_once(ServedModel& model) {
  GenerateOptions options;
  options.max_tokens = 2;
  ModelLane& lane = *model.take_lane(0);
  WarmUpEnd end;
  GenerationLoop::Events events;
  events.on_done = [event = end.event()](Generation&&) { event(); };
  events.on_error = [event = end.event()](const std::exception_ptr&) { event(); };
  GenerationLoop::Prepared prompt = lane.generations->prepare(std::vector<int32_t>{0}, options);
  prompt.salt = "\n";  // no client has this one, so none is reported a cached prefix
  lane.generations->add(std::move(prompt), std::move(events));
  model.wake(lane);
  end.wait();
}

void compute_once(ServedModel& model) {
  WarmUpEnd end;
  const auto job = std::make_shared<WarmUpJob>(model);
  job->on_start = [] {};
  job->on_done = [event = end.event()](const std::exception_ptr&) { event(); };
  model.push(job);
  end.wait();
}

}  // namespace

void warm_up(ServedModel& model) {
  try {
    if (model.translator) translate_once(model);
    if (model.generator) generate_once(model);
    if (model.recommender || model.embedder || model.classifier) compute_once(model);
  } catch (const Error&) {
  }
}

}  // namespace qkv
