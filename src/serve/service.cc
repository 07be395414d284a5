#include "serve/service.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/threads.h"

namespace qkv {
namespace {

constexpr uint64_t kUnwantedBody = 64 << 10;  // of a GET with a body, which is dropped
constexpr std::chrono::seconds kStuck{60};

std::string_view media_type(std::string_view value) {
  value = value.substr(0, value.find(';'));
  while (value.ends_with(' ')) value.remove_suffix(1);
  return value;
}

bool same_type(std::string_view value, std::string_view type) {
  return std::equal(value.begin(), value.end(), type.begin(), type.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

bool takes(BodyType body, std::string_view type) {
  if (body == BodyType::multipart) return same_type(type, "multipart/form-data");
  return same_type(type, "application/json") ||
         (body == BodyType::json_or_form && (type.empty() || same_type(type, "application/x-www-form-urlencoded")));
}

}  // namespace

Service::Service(std::vector<ServedRun> runs, ServerOptions options)
    : options_(std::move(options)),
      runs_(std::move(runs)),
      clients_(options_.client_items),
      thread_([this] { run_prepare_thread(); }) {}

Service::~Service() {
  guard_.reset();
  prepare_.stop();
  thread_.join();
  for (const ModelPtr& model : models_) model->stop();
}

void Service::run_prepare_thread() {
  set_threads(1);
  prepare_.run();
}

void Service::load() {
  std::vector<ModelPtr> models;
  for (const ServedRun& run : runs_) {
    models.push_back(std::make_shared<ServedModel>(run, options_, clients_));
    for (size_t i = 0; i + 1 < models.size(); i++)
      if (models[i]->name == models.back()->name) fail("the name {} stands for two runs", models.back()->name);
  }
  const auto workers = static_cast<int>(options_.workers);
  const int all = options_.threads > 0 ? static_cast<int>(options_.threads) : threads();
  for (int i = 0; i < workers; i++) compute_.push_back(std::make_unique<ComputeThread>(std::max(1, all / workers)));
  const auto shares = static_cast<int64_t>(workers) * std::ssize(models);
  for (const ModelPtr& model : models)
    model->start(compute_,
                 {std::max<int64_t>(1, options_.rows / workers), options_.cache / std::max<int64_t>(1, shares)});
  post([this, models = std::move(models)] {
    models_ = models;
    loading_ = false;
  });
}

bool Service::is_stuck() const {
  return std::ranges::any_of(compute_, [](const auto& thread) { return thread->step_time() > kStuck; });
}

void Service::add_call(const CallPtr& call) {
  calls_.emplace(call.get(), call);
  open_calls_++;
}

void Service::remove_call(Call& call) { open_calls_ -= calls_.erase(&call); }

void Service::cancel_all() {
  post([this] {
    for (const auto& [address, call] : std::map(calls_)) {
      HttpError error(503, "the server is shutting down");
      error.code = "draining";
      call->fail(error, Outcome::rejected);
    }
  });
}

ModelPtr Service::only_model(const std::vector<ModelPtr>& found, const std::string& name, std::string_view kind) {
  if (found.size() == 1 || (found.size() > 1 && !name.empty())) return found.front();
  HttpError error(404, !name.empty() ? fmt::format("no {} is called {}", kind, excerpt(name))
                       : found.empty()
                           ? fmt::format("no {} is served", kind)
                           : fmt::format("several of this kind are served: choose a {} by \"model\"", kind));
  if (found.size() > 1) error.status = 400;
  error.code = "model_not_found";
  error.param = "model";
  throw error;
}

ModelPtr Service::translator(const std::string& name) const {
  return find_model(name, "translator", [](const ServedModel& m) { return m.translator.has_value(); });
}
ModelPtr Service::generator(const std::string& name) const {
  return find_model(name, "language model", [](const ServedModel& m) { return m.generator.has_value(); });
}
ModelPtr Service::recommender(const std::string& name) const {
  return find_model(name, "recommender", [](const ServedModel& m) { return m.recommender.has_value(); });
}
ModelPtr Service::embedder(const std::string& name) const {
  return find_model(name, "encoder", [](const ServedModel& m) { return m.embedder.has_value(); });
}

void Service::check_body(const RequestHead& head, const Route& route) const {
  if (!head.has_body() && route.body != BodyType::json_or_form && route.method != "GET" &&
      head.find("content-type").empty())
    refuse(415, "the route takes application/json");
  if (!head.find("content-encoding").empty()) refuse(415, "Content-Encoding is not supported");
  if (route.body != BodyType::none && !takes(route.body, media_type(head.find("content-type"))))
    refuse(415, "Content-Type must be {} (is {})",
           route.body == BodyType::multipart ? "multipart/form-data" : "application/json",
           excerpt(head.find("content-type")));
}

Grant Service::admit(const RequestHead& head, const std::string&) {
  const RouteMatch match = find_route(head.method, head.target.path);
  if (!match.route && match.allowed.empty()) refuse(404, "no such route: {}", excerpt(head.target.path));
  if (!match.route) {
    HttpError error(405, fmt::format("the route takes {}", match.allowed));
    error.headers.emplace_back("Allow", match.allowed);
    throw error;
  }
  const Route& route = *match.route;
  if (route.answer_at_once || route.body == BodyType::none) return {kUnwantedBody};
  check_body(head, route);
  if (draining_ || loading_) {
    HttpError error(503, draining_ ? "the server is shutting down" : "Loading model");
    error.code = draining_ ? "draining" : "loading";
    error.retry_after = std::chrono::seconds(1);
    throw error;
  }
  const auto most = static_cast<uint64_t>(options_.max_body);
  const auto bytes = static_cast<int64_t>(std::min(head.chunked ? most : head.content_length.value_or(0), most));
  if ((body_bytes_ += bytes) > options_.bodies) {
    body_bytes_ -= bytes;
    HttpError error(429, fmt::format("the requests in progress have more than {} bytes", options_.bodies));
    error.code = "bodies";
    error.retry_after = std::chrono::seconds(1);
    throw error;
  }
  return {most, std::shared_ptr<void>(nullptr, [this, bytes](void*) { body_bytes_ -= bytes; })};
}

void Service::handle(std::shared_ptr<Exchange> exchange) {
  RouteMatch match = find_route(exchange->head().method, exchange->head().target.path);
  if (match.route->answer_at_once) return exchange->reply(match.route->answer_at_once(*this, *exchange));
  std::string client = exchange->client();
  const auto call = std::make_shared<Call>(*this, exchange, std::move(match), std::move(client));
  exchange->on_gone([this, weak = std::weak_ptr(call)] {
    post([weak] {
      if (const auto gone = weak.lock()) gone->cancel();
    });
  });
  post([call] { call->start(); });
}

HttpReply Service::refusal(const HttpError& error, const RequestHead* head) {
  return error_reply(head ? family_of(head->target.path) : Family::native, error);
}

}  // namespace qkv
