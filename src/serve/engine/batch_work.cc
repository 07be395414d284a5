#include "serve/engine/batch_work.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kHistoryCost = BatchQueue::kCost / 64;  // so that 64 histories are one call
constexpr int64_t kPartCost = 1024;  // tokens of a job: a client with many texts keeps others waiting for one job
constexpr size_t kNumberBytes = 12;  // of JSON
constexpr size_t kItemBytes = 80;

class EmbedJob : public BatchJob {
 public:
  EmbedJob(const Embedder& embedder, const EmbedOptions& options) : embedder_(embedder), options_(options) {}

  // Adds the tokens of a text, before the job is started.
  void add(std::vector<int32_t> text) {
    cost += std::ssize(text);
    texts_.push_back(std::move(text));
  }
  size_t bytes() const { return kNumberBytes * result.values.size(); }  // of JSON, about

  bool joins(const BatchJob& first) const override {
    const auto* other = dynamic_cast<const EmbedJob*>(&first);
    return other && other->options_.pooling == options_.pooling && other->options_.normalize == options_.normalize &&
           other->options_.prefix == options_.prefix && other->options_.prompt_name == options_.prompt_name &&
           other->options_.max_length == options_.max_length;
  }
  void compute(std::span<BatchJob* const> all) override {
    std::vector<std::vector<int32_t>> texts;
    for (BatchJob* job : all) {
      const auto& own = static_cast<EmbedJob*>(job)->texts_;
      texts.insert(texts.end(), own.begin(), own.end());
    }
    const Embeddings found = embedder_.embed_tokens(texts, options_);
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
  std::vector<std::vector<int32_t>> texts_;
  const EmbedOptions options_;
};

class ClassifyJob : public BatchJob {
 public:
  ClassifyJob(const Classifier& classifier, const ClassifyOptions& options)
      : classifier_(classifier), options_(options) {}

  // Adds the tokens of a text or a pair, before the job is started.
  void add(ClassifierTokens input) {
    cost += std::ssize(input.ids);
    inputs_.push_back(std::move(input));
  }
  size_t bytes() const {
    return result.texts.empty() ? 0 : kItemBytes * result.texts.size() * result.texts.front().size();
  }

  void compute(std::span<BatchJob* const>) override { result = classifier_.classify_tokens(inputs_, options_); }

  Classifications result;

 private:
  const Classifier& classifier_;
  std::vector<ClassifierTokens> inputs_;
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

int64_t tokens_of(const std::vector<int32_t>& text) { return std::ssize(text); }
int64_t tokens_of(const EmbedderTokens& text) { return std::ssize(text.ids); }
int64_t tokens_of(const ClassifierTokens& input) { return std::ssize(input.ids); }

// Deals texts in tokens out to jobs of about kPartCost. make: returns an empty job.
template <class Text, class Make>
auto jobs_of(std::vector<Text> texts, Make&& make) {
  std::vector<decltype(make())> jobs;
  for (Text& text : texts) {
    if (jobs.empty() || jobs.back()->cost + tokens_of(text) > kPartCost) jobs.push_back(make());
    jobs.back()->add(std::move(text));
  }
  return jobs;
}

// Returns f(i), the tokens of text i, for each of the texts.
template <class F>
auto encode_all(const CallPtr& call, const ModelPtr& model, size_t texts, F&& f) {
  std::vector<decltype(f(size_t{0}))> all;
  int64_t tokens = 0;
  model->queue.check_room(call->client(), static_cast<int64_t>(texts), tokens, call->deadline());
  for (size_t i = 0; i < texts; i++) {
    Service::check_wanted();
    all.push_back(f(i));
    tokens += tokens_of(all.back());
    model->queue.check_room(call->client(), static_cast<int64_t>(texts), tokens, call->deadline());
  }
  return all;
}

}  // namespace

std::vector<EmbedderTokens> encode(const CallPtr& call, const ModelPtr& model, const std::vector<std::string>& texts,
                                   EmbedOptions options) {
  return encode_all(call, model, texts.size(), [&](size_t i) {
    std::vector<EmbedderTokens> one = model->embedder->tokens({texts[i]}, options);
    options.first_number++;
    return std::move(one.front());
  });
}

std::vector<ClassifierTokens> encode(const CallPtr& call, const ModelPtr& model,
                                     const std::vector<ClassifierInput>& inputs, const ClassifyOptions& options) {
  const auto encode_one = [&](size_t i) {
    const auto number = static_cast<int64_t>(i + 1);
    const std::vector<int32_t> text = model->classifier->encode(inputs[i].text, number);
    if (!inputs[i].pair) return model->classifier->join(text, nullptr, options);
    const std::vector<int32_t> pair = model->classifier->encode(*inputs[i].pair, number);
    return model->classifier->join(text, &pair, options);
  };
  return encode_all(call, model, inputs.size(), encode_one);
}

std::vector<ClassifierTokens> encode_pairs(const CallPtr& call, const ModelPtr& model, const std::string& query,
                                           const std::vector<std::string>& texts, const ClassifyOptions& options) {
  const std::vector<int32_t> asked = model->classifier->encode(query);
  const auto encode_one = [&](size_t i) {
    const std::vector<int32_t> text = model->classifier->encode(texts[i], static_cast<int64_t>(i + 1));
    return model->classifier->join(asked, &text, options);
  };
  return encode_all(call, model, texts.size(), encode_one);
}

void embed(const CallPtr& call, const ModelPtr& model, std::vector<std::vector<int32_t>> texts,
           const EmbedOptions& options, std::function<void(const Embeddings&)> on_done) {
  const auto count = std::ssize(texts);
  int64_t all = 0;
  for (const std::vector<int32_t>& ids : texts) all += std::min(std::ssize(ids), model->embedder->max_length());
  auto jobs = jobs_of(std::move(texts), [&] { return std::make_shared<EmbedJob>(*model->embedder, options); });
  start_jobs<EmbedJob>(call, model, std::move(jobs), count, all, [on_done = std::move(on_done)](const auto& ended) {
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

// The tokens have the prefix already.
void embed(const CallPtr& call, const ModelPtr& model, std::vector<EmbedderTokens> texts, EmbedOptions options,
           std::function<void(const Embeddings&)> on_done) {
  options.prompt_name = std::nullopt;
  options.prefix = "";
  std::vector<std::vector<int32_t>> ids;
  for (EmbedderTokens& text : texts) ids.push_back(std::move(text.ids));
  embed(call, model, std::move(ids), options, std::move(on_done));
}

void classify(const CallPtr& call, const ModelPtr& model, std::vector<ClassifierTokens> inputs,
              const ClassifyOptions& options, std::function<void(Classifications&&)> on_done) {
  const auto count = std::ssize(inputs);
  int64_t tokens = 0;
  for (const ClassifierTokens& input : inputs) tokens += tokens_of(input);
  auto jobs = jobs_of(std::move(inputs), [&] { return std::make_shared<ClassifyJob>(*model->classifier, options); });
  start_jobs<ClassifyJob>(call, model, std::move(jobs), count, tokens,
                          [on_done = std::move(on_done)](const auto& ended) {
                            Classifications all;
                            for (const auto& job : ended) {
                              std::ranges::move(job->result.texts, std::back_inserter(all.texts));
                              all.cut += job->result.cut;
                              all.tokens += job->result.tokens;
                            }
                            on_done(std::move(all));
                          });
  model->metrics().add_input_tokens(tokens);
  call->track().add_texts(count, tokens);
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

void compute(const CallPtr& call, const ModelPtr& model, std::vector<Computation> parts,
             std::function<void(std::string&&)> on_done) {
  std::vector<std::shared_ptr<FunctionJob>> jobs;
  int64_t cost = 0;
  for (Computation& part : parts) {
    jobs.push_back(std::make_shared<FunctionJob>(std::move(part.function)));
    jobs.back()->cost = part.cost;
    cost += part.cost;
  }
  const auto count = std::ssize(jobs);
  start_jobs<FunctionJob>(call, model, std::move(jobs), count, cost, [on_done = std::move(on_done)](const auto& ended) {
    std::string all;
    for (const auto& job : ended) all += job->result;
    on_done(std::move(all));
  });
}

}  // namespace qkv
