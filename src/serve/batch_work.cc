#include "serve/batch_work.h"

#include <algorithm>
#include <span>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kHistoryCost = BatchQueue::kCost / 64;  // so that 64 histories are one call

class EmbedJob : public BatchJob {
 public:
  EmbedJob(const Embedder& embedder, std::vector<std::string> texts, const EmbedOptions& options)
      : embedder_(embedder), texts_(std::move(texts)), options_(options) {}

  bool joins(const BatchJob& first) const override {
    const auto* other = dynamic_cast<const EmbedJob*>(&first);
    return other && other->options_.pooling == options_.pooling && other->options_.normalize == options_.normalize &&
           other->options_.prefix == options_.prefix && other->options_.prompt_name == options_.prompt_name &&
           other->options_.max_length == options_.max_length;
  }
  void compute(std::span<BatchJob* const> all) override {
    std::vector<std::string> texts;
    for (BatchJob* job : all) {
      const auto& own = static_cast<EmbedJob*>(job)->texts_;
      texts.insert(texts.end(), own.begin(), own.end());
    }
    const Embeddings found = embedder_.embed(texts, options_);
    auto next = found.values.begin();
    for (BatchJob* job : all) {
      auto* own = static_cast<EmbedJob*>(job);
      const auto end = next + static_cast<std::ptrdiff_t>(own->texts_.size() * to_size(found.width));
      own->result = {found.width, std::vector<float>(next, end)};
      next = end;
    }
  }

  Embeddings result;

 private:
  const Embedder& embedder_;
  const std::vector<std::string> texts_;
  const EmbedOptions options_;
};

class RecommendJob : public BatchJob {
 public:
  RecommendJob(const Recommender& recommender, std::vector<RecommendLine> lines)
      : recommender_(recommender), lines_(std::move(lines)) {}

  bool joins(const BatchJob& first) const override { return dynamic_cast<const RecommendJob*>(&first) != nullptr; }
  void compute(std::span<BatchJob* const> all) override {
    std::vector<RecommendRequest> histories;
    for (BatchJob* job : all)
      for (const RecommendLine& line : static_cast<RecommendJob*>(job)->lines_)
        if (!line.similar) histories.push_back({line.history, line.times, line.options});
    std::vector<Recommendations> found = recommender_.recommend_all(histories);
    auto next = found.begin();
    for (BatchJob* job : all) {
      auto* own = static_cast<RecommendJob*>(job);
      own->result.clear();
      for (const RecommendLine& line : own->lines_)
        own->result.push_back(line.similar ? similar(line) : std::move(*next++));
    }
  }

  std::vector<Recommendations> result;

 private:
  Recommendations similar(const RecommendLine& line) const {
    return recommender_.similar(*line.similar, line.options ? *line.options : RecommendOptions());
  }

  const Recommender& recommender_;
  const std::vector<RecommendLine> lines_;
};

class FunctionJob : public BatchJob {
 public:
  explicit FunctionJob(std::function<std::string()> function) : function_(std::move(function)) {}

  void compute(std::span<BatchJob* const>) override { result = function_(); }

  std::string result;

 private:
  const std::function<std::string()> function_;
};

// A job of a call.
template <class Job>
class BatchWork : public CallWork, public std::enable_shared_from_this<BatchWork<Job>> {
 public:
  BatchWork(const CallPtr& call, ModelPtr model, std::shared_ptr<Job> job, std::function<void(Job&)> on_done)
      : call_(call), model_(std::move(model)), job_(std::move(job)), on_done_(std::move(on_done)) {}

  void start(const CallPtr& call, int64_t texts) {
    call->use(model_);
    place_ = model_->queue.enter(call->client(), texts, job_->cost, call->deadline());
    call->set_work(this->shared_from_this());
    job_->client = call->client();
    // The job may run when its call has ended, and the call owns this object.
    const auto post = [weak = this->weak_from_this(), &service = call->service()](auto function) {
      if (const auto self = weak.lock())
        service.post_to(self->call_, [self, function](const CallPtr&) { function(*self); });
    };
    job_->on_start = [post] { post([](BatchWork& work) { work.place_.start(); }); };
    job_->on_done = [post](const std::exception_ptr& error) { post([error](BatchWork& work) { work.end(error); }); };
    model_->push(job_);
  }

  void cancel() override {
    model_->batches.cancel(*job_);
    place_.leave();
    on_done_ = nullptr;
  }
  bool has_started() const override { return place_.started(); }

 private:
  void end(const std::exception_ptr& error) {
    place_.finish();
    const auto answer = std::move(on_done_);
    if (error && std::is_same_v<Job, FunctionJob>) std::rethrow_exception(error);  // the request may be wrong
    if (error) throw_model_error(error);
    answer(*job_);
  }

  const std::weak_ptr<Call> call_;
  const ModelPtr model_;
  const std::shared_ptr<Job> job_;
  std::function<void(Job&)> on_done_;
  ModelQueue::Place place_;
};

template <class Job>
void start_job(const CallPtr& call, const ModelPtr& model, std::shared_ptr<Job> job, int64_t texts, int64_t cost,
               std::function<void(Job&)> on_done) {
  job->cost = cost;
  std::make_shared<BatchWork<Job>>(call, model, std::move(job), std::move(on_done))->start(call, texts);
}

}  // namespace

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::string> texts, const EmbedOptions& options,
           int64_t tokens, std::function<void(const Embeddings&)> on_done) {
  const auto count = std::ssize(texts);
  start_job<EmbedJob>(call, model, std::make_shared<EmbedJob>(*model->embedder, std::move(texts), options), count,
                      tokens, [on_done = std::move(on_done)](EmbedJob& job) { on_done(job.result); });
  model->metrics().add_input_tokens(tokens);
  call->track().add_texts(count, tokens);
}

void recommend(const CallPtr& call, const ModelPtr& model, std::vector<RecommendLine> lines,
               std::function<void(std::vector<Recommendations>&&)> on_done) {
  const auto count = std::ssize(lines);
  start_job<RecommendJob>(call, model, std::make_shared<RecommendJob>(*model->recommender, std::move(lines)), count,
                          count * kHistoryCost,
                          [on_done = std::move(on_done)](RecommendJob& job) { on_done(std::move(job.result)); });
  call->track().add_texts(count);
}

void compute(const CallPtr& call, const ModelPtr& model, int64_t cost, std::function<std::string()> compute,
             std::function<void(std::string&&)> on_done) {
  start_job<FunctionJob>(call, model, std::make_shared<FunctionJob>(std::move(compute)), 1, cost,
                         [on_done = std::move(on_done)](FunctionJob& job) { on_done(std::move(job.result)); });
}

}  // namespace qkv
