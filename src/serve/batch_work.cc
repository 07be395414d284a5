#include "serve/batch_work.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kHistoryCost = BatchQueue::kCost / 64;  // so that 64 histories are one call

// Text: a string, or its tokens.
template <class Text>
class EmbedJob : public BatchJob {
 public:
  EmbedJob(const Embedder& embedder, std::vector<Text> texts, const EmbedOptions& options)
      : embedder_(embedder), texts_(std::move(texts)), options_(options) {}

  bool joins(const BatchJob& first) const override {
    const auto* other = dynamic_cast<const EmbedJob*>(&first);
    return other && other->options_.pooling == options_.pooling && other->options_.normalize == options_.normalize &&
           other->options_.prefix == options_.prefix && other->options_.prompt_name == options_.prompt_name &&
           other->options_.max_length == options_.max_length;
  }
  void compute(std::span<BatchJob* const> all) override {
    std::vector<Text> texts;
    for (BatchJob* job : all) {
      const auto& own = static_cast<EmbedJob*>(job)->texts_;
      texts.insert(texts.end(), own.begin(), own.end());
    }
    const Embeddings found = embed(texts);
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
  Embeddings embed(const std::vector<Text>& texts) const {
    if constexpr (std::is_same_v<Text, std::string>)
      return embedder_.embed(texts, options_);
    else
      return embedder_.embed_tokens(texts, options_);
  }

  const Embedder& embedder_;
  const std::vector<Text> texts_;
  const EmbedOptions options_;
};

class ClassifyJob : public BatchJob {
 public:
  ClassifyJob(const Classifier& classifier, std::vector<ClassifierInput> inputs, const ClassifyOptions& options)
      : classifier_(classifier), inputs_(std::move(inputs)), options_(options) {}

  void compute(std::span<BatchJob* const>) override { result = classifier_.classify(inputs_, options_); }

  Classifications result;

 private:
  const Classifier& classifier_;
  const std::vector<ClassifierInput> inputs_;
  const ClassifyOptions options_;
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

// The jobs of a call.
template <class Job>
class BatchWork : public CallWork, public std::enable_shared_from_this<BatchWork<Job>> {
 public:
  using Jobs = std::vector<std::shared_ptr<Job>>;
  using Done = std::function<void(const Jobs&)>;

  BatchWork(const CallPtr& call, ModelPtr model, Jobs jobs, Done on_done)
      : call_(call),
        model_(std::move(model)),
        jobs_(std::move(jobs)),
        on_done_(std::move(on_done)),
        left_(jobs_.size()) {}

  void start(const CallPtr& call, int64_t texts) {
    call->use(model_);
    int64_t cost = 0;
    for (const auto& job : jobs_) cost += job->cost;
    place_ = model_->queue.enter(call->client(), texts, cost, call->deadline());
    call->set_work(this->shared_from_this());
    // A job may run when its call has ended, and the call owns this object.
    const auto post = [weak = this->weak_from_this(), &service = call->service()](auto function) {
      if (const auto self = weak.lock())
        service.post_to(self->call_, [self, function](const CallPtr&) { function(*self); });
    };
    for (const auto& job : jobs_) {
      job->client = call->client();
      job->on_start = [post] { post([](BatchWork& work) { work.place_.start(); }); };
      job->on_done = [post](const std::exception_ptr& error) { post([error](BatchWork& work) { work.end(error); }); };
    }
    for (const auto& job : jobs_) model_->push(job);
  }

  void cancel() override {
    for (const auto& job : jobs_) model_->batches.cancel(*job);
    place_.leave();
    on_done_ = nullptr;
  }
  bool has_started() const override { return place_.started(); }

 private:
  // Takes the end of one job. The call ends with the first error, which cancels the other jobs.
  void end(const std::exception_ptr& error) {
    left_--;
    if (!error && left_ > 0) return;
    place_.finish();
    const auto answer = std::move(on_done_);
    if (error && std::is_same_v<Job, FunctionJob>) std::rethrow_exception(error);  // the request may be wrong
    if (error) throw_model_error(error);
    answer(jobs_);
  }

  const std::weak_ptr<Call> call_;
  const ModelPtr model_;
  const Jobs jobs_;
  Done on_done_;
  size_t left_;  // jobs that have not ended
  ModelQueue::Place place_;
};

template <class Job>
void start_jobs(const CallPtr& call, const ModelPtr& model, std::vector<std::shared_ptr<Job>> jobs, int64_t texts,
                typename BatchWork<Job>::Done on_done) {
  std::make_shared<BatchWork<Job>>(call, model, std::move(jobs), std::move(on_done))->start(call, texts);
}

template <class Job>
void start_job(const CallPtr& call, const ModelPtr& model, std::shared_ptr<Job> job, int64_t texts, int64_t cost,
               std::function<void(Job&)> on_done) {
  job->cost = cost;
  start_jobs<Job>(call, model, {std::move(job)}, texts,
                  [on_done = std::move(on_done)](const auto& jobs) { on_done(*jobs.front()); });
}

int64_t bytes_of(const std::string& text) { return std::ssize(text); }
int64_t bytes_of(const std::vector<int32_t>& tokens) { return 4 * std::ssize(tokens); }
int64_t bytes_of(const ClassifierInput& input) { return std::ssize(input.text) + std::ssize(input.pair.value_or("")); }

// Cuts texts into jobs of about BatchQueue::kCost tokens, between which other requests have their turn. cost: of all.
template <class Job, class Text, class Make>
std::vector<std::shared_ptr<Job>> jobs_of(std::vector<Text> texts, int64_t longest, int64_t cost, Make&& make) {
  const auto size_of = [longest](const Text& text) { return std::min(longest, bytes_of(text) / 4 + 2); };
  int64_t size = 0;
  for (const Text& text : texts) size += size_of(text);
  std::vector<std::shared_ptr<Job>> jobs;
  for (auto begin = texts.begin(); begin != texts.end();) {
    int64_t own = 0;
    auto end = begin;
    while (end != texts.end() && (end == begin || own + size_of(*end) <= BatchQueue::kCost)) own += size_of(*end++);
    jobs.push_back(make(std::vector<Text>(std::make_move_iterator(begin), std::make_move_iterator(end))));
    jobs.back()->cost = cost * own / size;
    begin = end;
  }
  return jobs;
}

template <class Text>
void embed_all(const CallPtr& call, const ModelPtr& model, std::vector<Text> texts, const EmbedOptions& options,
               int64_t tokens, std::function<void(const Embeddings&)> on_done) {
  const auto count = std::ssize(texts);
  const Embedder& embedder = *model->embedder;
  auto jobs = jobs_of<EmbedJob<Text>>(std::move(texts), embedder.max_length(), tokens, [&](std::vector<Text> part) {
    return std::make_shared<EmbedJob<Text>>(embedder, std::move(part), options);
  });
  start_jobs<EmbedJob<Text>>(call, model, std::move(jobs), count, [on_done = std::move(on_done)](const auto& done) {
    if (done.size() == 1) return on_done(done.front()->result);
    Embeddings all{done.front()->result.width, {}};
    for (const auto& job : done)
      all.values.insert(all.values.end(), job->result.values.begin(), job->result.values.end());
    on_done(all);
  });
  model->metrics().add_input_tokens(tokens);
  call->track().add_texts(count, tokens);
}

}  // namespace

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::string> texts, const EmbedOptions& options,
           int64_t tokens, std::function<void(const Embeddings&)> on_done) {
  embed_all(call, model, std::move(texts), options, tokens, std::move(on_done));
}

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::vector<int32_t>> texts,
           const EmbedOptions& options, int64_t tokens, std::function<void(const Embeddings&)> on_done) {
  embed_all(call, model, std::move(texts), options, tokens, std::move(on_done));
}

void classify(const CallPtr& call, const ModelPtr& model, std::vector<ClassifierInput> inputs,
              const ClassifyOptions& options, std::function<void(Classifications&&)> on_done) {
  const auto count = std::ssize(inputs);
  const Classifier& classifier = *model->classifier;
  int64_t cost = 0;
  for (const ClassifierInput& input : inputs) cost += std::min(classifier.max_length(), bytes_of(input) / 4 + 3);
  auto jobs =
      jobs_of<ClassifyJob>(std::move(inputs), classifier.max_length(), cost, [&](std::vector<ClassifierInput> part) {
        return std::make_shared<ClassifyJob>(classifier, std::move(part), options);
      });
  call->track().add_texts(count);
  start_jobs<ClassifyJob>(call, model, std::move(jobs), count,
                          [call = std::weak_ptr(call), model, on_done = std::move(on_done)](const auto& done) {
                            Classifications all;
                            for (const auto& job : done) {
                              std::ranges::move(job->result.texts, std::back_inserter(all.texts));
                              all.cut += job->result.cut;
                              all.tokens += job->result.tokens;
                            }
                            model->metrics().add_input_tokens(all.tokens);
                            if (const CallPtr alive = call.lock()) alive->track().add_texts(0, all.tokens);
                            on_done(std::move(all));
                          });
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
