#include "serve/engine/admission.h"

#include <unistd.h>

#include <algorithm>

#include "core/ascii.h"
#include "core/json.h"
#include "serve/engine/served_model.h"
#include "serve/http/http_target.h"

namespace qkv {
namespace {

constexpr int64_t kShortAnswer = 64 << 10;  // bytes, which do not count as unread
constexpr int64_t kAnswersPerBody = 4;      // bytes of unread answers, for each of the bodies
constexpr int64_t three_quarters(int64_t bytes) { return bytes - bytes / 4; }
constexpr uint64_t kUnwantedBody = 64 << 10;  // of a GET with a body, which is dropped
// The status in the log when there was no answer, or not even a request.
constexpr int kClientLeft = 499, kHandshakeFailed = 525;

std::string media_type(std::string_view value) {
  value = value.substr(0, value.find(';'));
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  return ascii_lower(value);
}

bool takes(BodyType body, const std::string& type) {
  if (body == BodyType::multipart) return type == "multipart/form-data";
  if (type == "application/json") return true;
  return body == BodyType::json_or_form && (type.empty() || type == "application/x-www-form-urlencoded");
}

void check_body(const RequestHead& head, const Route& route) {
  if (!head.find("content-encoding").empty()) refuse(415, "Content-Encoding is not supported");
  const std::string type = media_type(head.find("content-type"));
  if (route.body == BodyType::none || takes(route.body, type)) return;
  refuse(415, "Content-Type must be {} (is {})",
         route.body == BodyType::multipart ? "multipart/form-data" : "application/json", excerpt(type));
}

// Throws HttpError 404 and 405 for a request without a route.
void check_route(const RequestHead& head, const RouteMatch& match) {
  if (match.route || (head.method == "OPTIONS" && !match.allowed.empty())) return;
  if (match.allowed.empty()) refuse(404, "no such route: {}", excerpt(head.target.path));
  HttpError error(405, fmt::format("the route takes {}", match.allowed));
  error.headers.emplace_back("Allow", match.allowed);
  throw error;
}

RequestTrack& track_held_by(const Exchange& exchange) { return *static_cast<RequestTrack*>(exchange.hold().get()); }

}  // namespace

void DefaultModels::set(const std::vector<std::shared_ptr<ServedModel>>& models) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < kModelUses.size(); i++) {
    const auto serves = [use = kModelUses[i]](const auto& model) { return model->serves(use); };
    models_[i] = std::ranges::count_if(models, serves) == 1 ? *std::ranges::find_if(models, serves) : nullptr;
  }
}

std::shared_ptr<ServedModel> DefaultModels::find(ModelUse use) const {
  const std::lock_guard lock(mutex_);
  const auto place = std::ranges::find(kModelUses, use);
  return place == kModelUses.end() ? nullptr : models_[static_cast<size_t>(place - kModelUses.begin())];
}

Admission::Admission(const ServerOptions& options, Metrics& metrics)
    : options_(options),
      metrics_(metrics),
      log_(options.log, STDERR_FILENO),
      proxies_(options.trust_proxy),
      bodies_(options.bodies, three_quarters(options.bodies)),
      answers_(kAnswersPerBody * options.bodies, options.bodies) {
  if (!options.api_keys.empty()) keys_.emplace(options.api_keys);
}

void Admission::set_listeners(const std::vector<std::string>& addresses) {
  origins_.emplace(addresses, options_.allow_host, options_.cors_origin);
}

void Admission::set_models(const std::vector<ModelPtr>& models) {
  default_models_.set(models);
  loading_ = false;
}

void Admission::reload_keys() {
  if (keys_) keys_->reload();
}

std::optional<std::string> Admission::name_of_key(std::string_view key) const {
  return keys_ && !key.empty() ? keys_->name_of(key) : std::nullopt;
}

std::shared_ptr<RequestTrack> Admission::track_of(const RequestHead& head, const std::string& peer) const {
  auto track = std::make_shared<RequestTrack>();
  const std::string address = proxies_.client_of(peer, head);
  track->client = client_of_address(address);
  track->change([&](RequestRecord& record) {
    record.client = address;
    record.method = head.method;
    if (const auto trace = parse_traceparent(head.find("traceparent"))) {
      record.trace = trace->trace;
      record.span = new_span();
    }
  });
  return track;
}

void Admission::check_key(const RequestHead& head, const Route& route, RequestTrack& track) const {
  if (!keys_) return;
  const std::string_view key = presented_key(head);
  if (const std::optional<std::string> name = name_of_key(key)) {
    track.client = *name;
    track.has_key = true;
    track.change([&](RequestRecord& record) { record.client = *name; });
  } else if (!route.is_open && !(route.has_key_in_body && key.empty())) {
    throw HttpError(401, key.empty() ? "an API key is required" : "the API key is not known");
  }
}

// Refuses a request that no body could save. Where several models could answer, the body chooses one, and the request
// is refused later.
void Admission::check_room(const RequestHead& head, const Route& route, const RequestTrack& track) const {
  if (loading_ || ending_)
    throw HttpError(503, ending_ ? "the server is shutting down" : "Loading model", ending_ ? "draining" : "loading",
                    std::chrono::seconds(1));
  const ModelPtr model = default_models_.find(route.use);
  if (!model) return;
  const std::string client = keys_ && !track.has_key ? "" : track.client;  // "": the body may name it
  model->queue.check_room(client, 1, 1, deadline_of(head, options_.deadline, true));
}

void Admission::grant_body(const RequestHead& head, RequestTrack& track) {
  const auto most = static_cast<uint64_t>(options_.max_body);
  const auto bytes = static_cast<int64_t>(std::min(head.chunked ? most : head.content_length.value_or(0), most));
  if (bytes == 0) return;
  track.body_client = track.client;
  if (!bodies_.take(track.client, bytes)) {
    const bool is_own = bodies_.of(track.client) + bytes > bodies_.most_of_one();
    throw HttpError(429,
                    fmt::format("the requests {}in progress have more than {} bytes", is_own ? "of this client " : "",
                                is_own ? bodies_.most_of_one() : bodies_.most_of_all()),
                    "bodies", std::chrono::seconds(1));
  }
  track.bodies = &bodies_;
  track.body_held = bytes;
}

// Refuses a client that does not read its answers.
void Admission::check_answers(const RequestTrack& track) const {
  if (answers_.of(track.client) < answers_.most_of_one()) return;
  throw HttpError(429, fmt::format("this client has not read {} bytes of its answers", answers_.of(track.client)),
                  "answers", std::chrono::seconds(1));
}

void Admission::hold_answer(RequestTrack& track, int64_t bytes, int status) {
  if (track.answers) answers_.give_back(track.answer_client, track.answer_held);
  track.answers = nullptr;
  if (bytes <= kShortAnswer) return;
  track.answer_client = track.client;
  if (!answers_.take(track.client, bytes))
    throw HttpError(
        status,
        fmt::format("the answer may have {} bytes, and clients have {} bytes of answers that are not read (at "
                    "most {}; {} of one client)",
                    bytes, answers_.of_all(), answers_.most_of_all(), answers_.most_of_one()),
        "answers", std::chrono::seconds(1));
  track.answers = &answers_;
  track.answer_held = bytes;
}

void Admission::admit(const RequestHead& head, const std::string& peer, Grant& grant) {
  const std::shared_ptr<RequestTrack> track = track_of(head, peer);
  track->match = find_route(head.method, head.target.path);
  grant = {kUnwantedBody, track};
  if (origins_) origins_->check(head);
  check_route(head, track->match);
  if (origins_) grant.headers = origins_->headers(head);
  if (!track->match.route) return;
  const Route& route = *track->match.route;
  check_key(head, route, *track);
  if (route.body != BodyType::none) check_body(head, route);
  try {
    if (!route.answer_at_once) {
      check_room(head, route, *track);
      check_answers(*track);
    }
    if (route.body == BodyType::none) return;
    grant_body(head, *track);
    grant.most_body = static_cast<uint64_t>(options_.max_body);
  } catch (const HttpError& error) {
    if (const ModelPtr model = default_models_.find(route.use)) {
      model->metrics().rejected(reason_of(error.code));
      track->change([&](RequestRecord& record) { record.model = model->name; });
    }
    throw;
  }
}

HttpReply Admission::answer_options(const RequestHead& head, const RouteMatch& match) const {
  const auto preflight = origins_ ? origins_->preflight(head, match.allowed) : std::nullopt;
  return preflight.value_or(HttpReply{204, "", "", {{"Allow", match.allowed + ", OPTIONS"}}});
}

HttpReply Admission::refusal(const Refusal& refused) {
  const RequestHead none, *head = refused.head;
  const int status = refused.error.status;
  if (!head) metrics_.malformed(status);
  const auto held = std::static_pointer_cast<RequestTrack>(refused.hold);
  const std::shared_ptr<RequestTrack> track = held ? held : track_of(head ? *head : none, refused.client);
  track->end(status == 429 || status == 503 ? Outcome::rejected : Outcome::failed);
  HttpReply reply = error_reply(track->match.family, refused.error);
  if (head && origins_)
    for (auto& header : origins_->headers(*head)) reply.headers.push_back(std::move(header));
  track->change([&](RequestRecord& record) {
    record.id = refused.id;
    record.sent_bytes = std::ssize(reply.body);
  });
  finish(*track, status, head);
  return reply;
}

void Admission::ended(const Exchange& exchange) {
  RequestTrack& track = track_held_by(exchange);
  track.change([&](RequestRecord& record) {
    record.id = exchange.id();
    record.sent_bytes = static_cast<int64_t>(exchange.sent_bytes());
    record.received_bytes = std::ssize(exchange.body());
  });
  finish(track, exchange.status() == 0 ? kClientLeft : exchange.status(), &exchange.head());
}

void Admission::handshake_failed(const std::string& peer) {
  metrics_.malformed(kHandshakeFailed);
  const std::shared_ptr<RequestTrack> track = track_of(RequestHead(), peer);
  track->end(Outcome::failed);
  RequestRecord record = track->take();
  record.status = kHandshakeFailed;
  log_.write(std::move(record));
}

void Admission::finish(RequestTrack& track, int status, const RequestHead* head) {
  RequestRecord record = track.take();
  record.status = status;
  if (track.match.route) record.route = track.match.route->path;
  metrics_.request_done(record.route, head ? head->method : "", status, record.seconds);
  metrics_.add_received_bytes(record.received_bytes);
  metrics_.add_sent_bytes(record.sent_bytes);
  log_.write(std::move(record));
}

}  // namespace qkv
