#include "serve/engine/batch_work.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kHistoryCost = BatchQueue::kCost / 64;  // so that 64 histories are one call
constexpr int64_t kPartCost = 1024;    // tokens of a job: a client with many texts keeps others waiting for one job
constexpr int64_t kBytesPerToken = 8;  // of a text that is converted to tokens and then cut
constexpr size_t kNumberBytes = 12;    // of JSON
constexpr size_t kItemBytes = 80;

// Text: a string, or its tokens.
template <class Text>
class EmbedJob : public BatchJob {
 public:
  EmbedJob(const Embedder& embedder, const EmbedOptions& options) : embedder_(embedder), options_(options) {}

  // Adds a text, before the job is started.
  void add(Text text, int64_t work) {
    texts_.push_back(std::move(text));
    cost += work;
  }
  size_t bytes() const { return kNumberBytes * result.values.size(); }  // of JSON, about

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
  std::vector<Text> texts_;
  const EmbedOptions options_;
};

class ClassifyJob : public BatchJob {
 public:
  ClassifyJob(const Classifier& classifier, const ClassifyOptions& options)
      : classifier_(classifier), options_(options) {}

  // Adds a text or a pair, before the job is started.
  void add(ClassifierInput input, int64_t work) {
    inputs_.push_back(std::move(input));
    cost += work;
  }
  size_t bytes() const {
    return result.texts.empty() ? 0 : kItemBytes * result.texts.size() * result.texts.front().size();
  }

  void compute(std::span<BatchJob* const>) override { result = classifier_.classify(inputs_, options_); }

  Classifications result;

 private:
  const Classifier& classifier_;
  std::vector<ClassifierInput> inputs_;
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

  size_t bytes() const {
    size_t items = 0;
    for (const Recommendations& one : result) items += one.items.size();
    return kItemBytes * items;
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
  size_t bytes() const { return 0; }  // the result is the answer

  std::string result;

 private:
  const std::function<std::string()> function_;
};

// The jobs of a call, each with a part of its texts.
template <class Job>
class BatchWork : public CallWork, public std::enable_shared_from_this<BatchWork<Job>> {
 public:
  using Jobs = std::vector<std::shared_ptr<Job>>;
  using OnDone = std::function<void(const Jobs&)>;

  BatchWork(const CallPtr& call, ModelPtr model, Jobs jobs, OnDone on_done)
      : call_(call), model_(std::move(model)), jobs_(std::move(jobs)), on_done_(std::move(on_done)) {}

  // cost: of the queue.
  void start(const CallPtr& call, int64_t texts, int64_t cost) {
    call->use(model_);
    place_ = model_->queue.enter(call->client(), texts, cost, call->deadline());
    call->set_work(this->shared_from_this());
    open_ = jobs_.size();
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
  void end(const std::exception_ptr& error) {
    if (!error && --open_ > 0) return;
    error ? place_.leave() : place_.finish();
    if (error && std::is_same_v<Job, FunctionJob>) std::rethrow_exception(error);  // the request may be wrong
    if (error) throw_model_error(error);
    const auto call = call_.lock();
    size_t bytes = 0;
    for (const auto& job : jobs_) bytes += job->bytes();
    call->service().run(call, bytes,
                        [jobs = jobs_, answer = std::exchange(on_done_, nullptr)](const CallPtr&) { answer(jobs); });
  }

  const std::weak_ptr<Call> call_;
  const ModelPtr model_;
  const Jobs jobs_;
  OnDone on_done_;
  ModelQueue::QueueTicket place_;
  size_t open_ = 0;  // jobs that have not ended
};

// Starts jobs: at once, or when the part of the call that runs on a text thread has ended.
template <class Job>
void start_jobs(const CallPtr& call, const ModelPtr& model, std::vector<std::shared_ptr<Job>> jobs, int64_t texts,
                int64_t cost, typename BatchWork<Job>::OnDone on_done) {
  const auto work = std::make_shared<BatchWork<Job>>(call, model, std::move(jobs), std::move(on_done));
  call->service().leave(call, [work, texts, cost](const CallPtr& started) { work->start(started, texts, cost); });
}

int64_t bytes_of(const std::string& text) { return std::ssize(text); }
int64_t bytes_of(const std::vector<int32_t>& tokens) { return 4 * std::ssize(tokens); }
int64_t bytes_of(const ClassifierInput& input) { return std::ssize(input.text) + std::ssize(input.pair.value_or("")); }

// Deals texts out to jobs of about kPartCost. tokens: that the model reads of each text; make: returns an empty job.
template <class Text, class Make>
auto jobs_of(std::vector<Text> texts, const std::vector<int64_t>& tokens, Make&& make) {
  std::vector<decltype(make())> jobs;
  for (size_t i = 0; i < texts.size(); i++) {
    const int64_t work = std::max(tokens[i], bytes_of(texts[i]) / kBytesPerToken);
    if (jobs.empty() || jobs.back()->cost + work > kPartCost) jobs.push_back(make());
    jobs.back()->add(std::move(texts[i]), work);
  }
  return jobs;
}

template <class Text>
void embed_all(const CallPtr& call, const ModelPtr& model, std::vector<Text> texts, const EmbedOptions& options,
               std::vector<int64_t> tokens, std::function<void(const Embeddings&)> on_done) {
  const auto count = std::ssize(texts);
  for (int64_t& read : tokens) read = std::min(read, model->embedder->max_length());
  const int64_t all = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  using Job = EmbedJob<Text>;
  auto jobs = jobs_of(std::move(texts), tokens, [&] { return std::make_shared<Job>(*model->embedder, options); });
  start_jobs<Job>(call, model, std::move(jobs), count, all, [on_done = std::move(on_done)](const auto& ended) {
    Embeddings found;
    for (const auto& job : ended) {
      found.width = job->result.width;
      found.values.insert(found.values.end(), job->result.values.begin(), job->result.values.end());
    }
    on_done(found);
  });
  model->metrics().add_input_tokens(all);
  call->track().add_texts(count, all);
}

}  // namespace

std::vector<int64_t> count_tokens(const CallPtr& call, const ModelPtr& model, const std::vector<std::string>& texts,
                                  EmbedOptions options) {
  std::vector<int64_t> counts;
  int64_t read = 0;
  for (const std::string& text : texts) {
    Service::check_wanted();
    counts.push_back(model->embedder->count_tokens({text}, options).front());
    options.first_number++;
    read += std::min(counts.back(), model->embedder->max_length());
    model->queue.check_room(call->client(), std::ssize(texts), read, call->deadline());
  }
  return counts;
}

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::string> texts, const EmbedOptions& options,
           std::vector<int64_t> tokens, std::function<void(const Embeddings&)> on_done) {
  embed_all(call, model, std::move(texts), options, std::move(tokens), std::move(on_done));
}

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::vector<int32_t>> texts,
           const EmbedOptions& options, std::function<void(const Embeddings&)> on_done) {
  std::vector<int64_t> tokens;
  for (const std::vector<int32_t>& ids : texts) tokens.push_back(std::ssize(ids));
  embed_all(call, model, std::move(texts), options, std::move(tokens), std::move(on_done));
}

void classify(const CallPtr& call, const ModelPtr& model, std::vector<ClassifierInput> inputs,
              const ClassifyOptions& options, std::function<void(Classifications&&)> on_done) {
  const auto count = std::ssize(inputs);
  const Classifier& classifier = *model->classifier;
  std::vector<int64_t> tokens;  // an estimate: a token has four bytes, and there are up to three around texts
  for (const ClassifierInput& input : inputs)
    tokens.push_back(std::min(classifier.max_length(), bytes_of(input) / 4 + 3));
  const int64_t cost = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  auto jobs = jobs_of(std::move(inputs), tokens, [&] { return std::make_shared<ClassifyJob>(classifier, options); });
  call->track().add_texts(count);
  start_jobs<ClassifyJob>(call, model, std::move(jobs), count, cost,
                          [call = std::weak_ptr(call), model, on_done = std::move(on_done)](const auto& ended) {
                            Classifications all;
                            for (const auto& job : ended) {
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
  const auto job = std::make_shared<RecommendJob>(*model->recommender, std::move(lines));
  job->cost = count * kHistoryCost;
  start_jobs<RecommendJob>(
      call, model, {job}, count, count * kHistoryCost,
      [on_done = std::move(on_done)](const auto& ended) { on_done(std::move(ended.front()->result)); });
  call->track().add_texts(count);
}

void compute(const CallPtr& call, const ModelPtr& model, int64_t cost, std::function<std::string()> compute,
             std::function<void(std::string&&)> on_done) {
  const auto job = std::make_shared<FunctionJob>(std::move(compute));
  job->cost = cost;
  start_jobs<FunctionJob>(call, model, {job}, 1, cost, [on_done = std::move(on_done)](const auto& ended) {
    on_done(std::move(ended.front()->result));
  });
}

}  // namespace qkv
