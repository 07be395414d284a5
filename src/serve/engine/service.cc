#include "serve/engine/service.h"

#include <algorithm>
#include <future>

#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/start_thread.h"
#include "core/system/threads.h"
#include "serve/http/callback_batch.h"

namespace qkv {
namespace {

std::vector<std::string> route_names() {
  std::vector<std::string> names;
  for (const ApiFamily& family : api_families())
    for (const Route& route : family.routes())
      if (std::find(names.begin(), names.end(), route.path) == names.end()) names.emplace_back(route.path);
  return names;
}

std::vector<MetricsModel> metrics_models(const std::vector<ServedRun>& runs) {
  std::vector<MetricsModel> models;
  for (const ServedRun& run : runs) models.push_back({run.name, ""});
  return models;
}

constexpr int kTextThreads = 2, kShortTextThreads = 1;
constexpr size_t kShort = 512;  // bytes of a text that the prepare thread reads or writes itself

constexpr int kWorkers = 4;  // at most, unless another number is given: each has its part of the cache

int threads_of(const ServerOptions& options) {
  return options.threads > 0 ? static_cast<int>(options.threads) : threads();
}

const ServerOptions& checked(const ServerOptions& options) {
  check(options);
  return options;
}

}  // namespace

Service::Service(const ServerOptions& options)
    : options_(checked(options)),
      runs_(served_runs(options)),
      clients_(options.client_items),
      metrics_(route_names(), metrics_models(runs_), options.cache),
      share_(threads_of(options)),
      admission_(options_, metrics_) {
  for (const ApiFamily& family : api_families())
    if (family.make_state) states_.push_back(family.make_state(options));
  const int workers = options.workers > 0 ? static_cast<int>(options.workers) : std::min(threads_of(options), kWorkers);
  for (int i = 0; i < workers; i++) compute_.push_back(std::make_unique<ComputeThread>(share_));
  texts_.emplace(kTextThreads, kShortTextThreads);
  thread_ = start_thread("server", [this] {
    set_threads(1);
    is_prepare_thread_ = true;
    while (!run_unless_out_of_memory([&] { prepare_.run(); })) {
    }
  });
}

Service::~Service() {
  texts_.reset();
  guard_.reset();
  prepare_.stop();
  thread_.join();
  for (const auto& [address, call] : std::map(calls_)) call->cancel();  // it and its work hold each other
  for (const auto* models : {&models_, &retired_})
    for (const ModelPtr& model : *models) model->stop();
}

void Service::handle(std::shared_ptr<Exchange> exchange) {
  const auto track = std::static_pointer_cast<RequestTrack>(exchange->hold());
  const RouteMatch& match = track->match;
  if (!match.route) {
    track->end(Outcome::done);
    return exchange->reply(admission_.answer_options(exchange->head(), match));
  }
  if (match.route->answer_at_once) {
    track->end(Outcome::done);
    return exchange->reply(match.route->answer_at_once(*this, *exchange));
  }
  const auto call = std::make_shared<Call>(*this, exchange, track);
  exchange->on_gone([this, weak = std::weak_ptr(call)] { post_to(weak, [](const CallPtr& gone) { gone->cancel(); }); });
  post([call] { call->start(); });
}

// ---- Models

ModelPtr Service::load_run(size_t number) {
  const QueueLimits limits{options_.queue_items, options_.queue_tokens};
  auto model = std::make_shared<ServedModel>(runs_[number], options_.embed, limits, clients_, metrics_.model(number));
  for (const ServedRun& run : runs_)
    for (const ChainMember& member : run.chain)
      if (member.name == model->name) languages_in_chain(run.name, member, *model);
  metrics_.replace_model(
      number, {model->name, std::string(name_of(model->info.kind)), model->is_int8(), model->info.serving_bytes});
  return model;
}

// Makes a chain of the models of its runs, which come first among the models.
ModelPtr Service::make_chain(size_t number, const std::vector<ModelPtr>& models) {
  std::vector<ModelPtr> members;
  for (const ChainMember& member : runs_[number].chain)
    members.push_back(*std::ranges::find(models, member.name, [](const ModelPtr& model) { return model->name; }));
  const QueueLimits limits{options_.queue_items, options_.queue_tokens};
  auto chain =
      std::make_shared<ServedModel>(runs_[number], std::move(members), limits, clients_, metrics_.model(number));
  metrics_.replace_model(number, {chain->name, std::string(name_of(chain->info.kind))});
  return chain;
}

// A step of a language model reads all its weights for a few rows, so that one worker with all threads is faster than
// several, unless their number is given. It also finds every beginning of a text that is kept.
std::vector<ComputeThread*> Service::workers_of(size_t number, const ServedModel& model) const {
  if (options_.workers == 0 && model.generator) return {compute_[number % compute_.size()].get()};
  std::vector<ComputeThread*> workers;
  for (const auto& worker : compute_) workers.push_back(worker.get());
  return workers;
}

void Service::start(size_t number, const ModelPtr& model) {
  const std::vector<ComputeThread*> workers = workers_of(number, *model);
  const auto lanes = std::ssize(workers);
  model->start(
      workers,
      {std::max(options_.max_beam, options_.rows / lanes), options_.cache / (lanes * std::ssize(options_.runs))},
      {[this](double seconds) { metrics_.add_busy_seconds(seconds); },
       [this](CallbackBatch& events) {
         events.send([this](auto&& call_all) {
           post([call_all] {
             SendBatch batch;
             call_all();
             batch.send();
           });
         });
       }});
}

std::vector<std::string> Service::load() {
  std::vector<ModelPtr> models;
  std::vector<std::string> notes;
  for (size_t i = 0; i < runs_.size(); i++) {
    models.push_back(runs_[i].chain.empty() ? load_run(i) : make_chain(i, models));
    if (!models.back()->titles_doubt.empty()) notes.push_back(models.back()->titles_doubt);
  }
  std::vector<std::function<void()>> publish;
  for (const auto& state : states_) publish.push_back(state->prepare(models));
  for (size_t i = 0; i < models.size(); i++) {
    if (models[i]->chain.empty()) start(i, models[i]);
    metrics_.read_model_from(i, models[i]->cache_sources());
  }
  for (const ModelPtr& model : models) warm_up(*model);
  const auto published = std::make_shared<std::promise<void>>();
  std::future<void> done = published->get_future();
  post([this, published, models = std::move(models), publish = std::move(publish)] {
    {
      const std::lock_guard lock(models_mutex_);
      models_ = models;
    }
    for (const auto& function : publish) function();
    admission_.set_models(models_);
    published->set_value();
  });
  done.wait();  // a request that is sent when this returns is answered
  return notes;
}

std::vector<std::string> Service::reload() {
  std::vector<std::string> lines;
  const auto attempt = [&](auto&& function) {
    try {
      function();
    } catch (const std::exception& error) {
      lines.emplace_back(error.what());
    }
  };
  attempt([&] { admission_.reload_keys(); });
  for (size_t i = 0; i < options_.runs.size(); i++)  // chains follow their runs
    attempt([&] {
      const ModelPtr model = load_run(i);
      start(i, model);
      warm_up(*model);
      if (!model->titles_doubt.empty()) lines.push_back(model->titles_doubt);
      post([this, i, model] { replace(i, model); });
    });
  return lines;
}

void Service::replace(size_t number, const ModelPtr& model) {
  metrics_.read_model_from(number, model->cache_sources());
  {
    const std::lock_guard lock(models_mutex_);
    retired_.push_back(std::exchange(models_[number], model));
    for (size_t i = options_.runs.size(); i < runs_.size(); i++)
      if (std::ranges::find(runs_[i].chain, model->name, &ChainMember::name) != runs_[i].chain.end())
        retired_.push_back(std::exchange(models_[i], make_chain(i, models_)));
  }
  admission_.set_models(models_);
  drop_retired();
}

void Service::drop_retired() {
  for (ModelPtr& model : retired_) {
    if (model.use_count() > 1) continue;
    model->stop();
    model = nullptr;
  }
  std::erase(retired_, nullptr);
  if (retired_.empty()) return;
  cleaning_.expires_after(std::chrono::milliseconds(100));
  cleaning_.async_wait([this](const boost::system::error_code& error) {
    if (!error) drop_retired();
  });
}

ModelPtr Service::only_model(const std::vector<ModelPtr>& found, const std::string& name, std::string_view kind) {
  if (found.size() == 1) return found.front();
  const std::string message = !name.empty()   ? fmt::format("no {} is called {}", kind, excerpt(name))
                              : found.empty() ? fmt::format("no {} is served", kind)
                                              : "several models could answer: choose one by \"model\"";
  HttpError error(found.empty() ? 404 : 400, message, "model_not_found");
  error.param = "model";
  throw error;
}

ModelPtr Service::find_model(const std::string& name, std::string_view kind, ModelUse use) const {
  return find_model(name, kind, [use](const ServedModel& model) { return model.serves(use); });
}
ModelPtr Service::translator(const std::string& name) const {
  return find_model(name, "translator", ModelUse::translate);
}
ModelPtr Service::generator(const std::string& name) const {
  return find_model(name, "language model", ModelUse::generate);
}
ModelPtr Service::recommender(const std::string& name) const {
  return find_model(name, "recommender", ModelUse::recommend);
}
ModelPtr Service::embedder(const std::string& name) const { return find_model(name, "encoder", ModelUse::embed); }
ModelPtr Service::classifier(const std::string& name) const {
  return find_model(name, "classifier", ModelUse::classify);
}

bool Service::is_stuck() const {
  return std::any_of(compute_.begin(), compute_.end(),
                     [](const auto& thread) { return thread->step_time() > std::chrono::seconds(60); });
}

// ---- Calls

namespace {

// A part of a call that runs on a text thread.
struct CallPart {
  const Call& call;
  std::vector<Service::Part> left = {};  // for the prepare thread

  static inline thread_local CallPart* current = nullptr;
};

struct Unwanted {};  // the call has ended

}  // namespace

void Service::check_wanted() {
  if (CallPart::current && CallPart::current->call.has_ended()) throw Unwanted();
}

void Service::run(const CallPtr& call, size_t bytes, Part function) {
  const size_t most = std::max(bytes, call->body().size());  // an answer may repeat what was asked
  if (most <= kShort || !is_prepare_thread()) return function(call);
  run_long(call, most, std::move(function));
}

void Service::leave(const CallPtr& call, Part function) {
  if (is_prepare_thread()) return function(call);
  if (CallPart* part = CallPart::current; part && &part->call == call.get())
    part->left.push_back(std::move(function));
  else
    post_to(call, std::move(function));
}

void Service::run_long(const CallPtr& call, size_t bytes, Part function) {
  texts_->push(call->client(), static_cast<int64_t>(bytes), [this, weak = std::weak_ptr(call), function] {
    const CallPtr alive = weak.lock();
    if (!alive || alive->has_ended()) return;
    CallPart part{*alive};
    CallPart::current = &part;
    std::exception_ptr error;
    try {
      function(alive);
    } catch (const Unwanted&) {
    } catch (...) {
      error = std::current_exception();
    }
    CallPart::current = nullptr;
    const bool is_posted = run_unless_out_of_memory([&] {
      post_to(weak, [left = std::move(part.left), error](const CallPtr& next) {
        for (const Part& action : left) action(next);
        if (error) std::rethrow_exception(error);
      });
    });
    if (!is_posted) alive->abandon();
  });
}

void Service::add_call(const CallPtr& call) { calls_.emplace(call.get(), call); }
void Service::remove_call(Call& call) { calls_.erase(&call); }

int64_t Service::cancel_all() {
  admission_.end();
  const auto count = std::make_shared<std::promise<int64_t>>();
  std::future<int64_t> counted = count->get_future();
  post([this, count, error = HttpError(503, "the server is shutting down", "draining")] {
    int64_t open = 0;
    for (; !calls_.empty(); open++) {
      const CallPtr call = calls_.begin()->second;
      call->fail(error);
    }
    count->set_value(open);
  });
  return counted.get();
}

}  // namespace qkv
