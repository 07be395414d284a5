#include "serve/engine/call.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "serve/engine/service.h"
#include "serve/http/out_of_memory.h"

namespace qkv {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr size_t kPauseAt = 64 << 10, kContinueAt = 32 << 10;  // bytes that a slow reader has not taken
constexpr std::chrono::seconds kSilence{15};                   // after which a stream sends a comment

// Returns the seconds that a header states, or `otherwise`.
Milliseconds seconds_of(std::string_view value, Milliseconds otherwise) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || end != value.data() + value.size() || !(seconds >= 0) || seconds > 1e6) return otherwise;
  return Milliseconds(static_cast<int64_t>(1000 * seconds));
}

HttpError http_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const HttpError& e) {
    return e;
  } catch (const Error& e) {
    return {400, e.what()};
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception&) {
    return {500, "internal error"};
  }
}

}  // namespace

// The header of OpenAI's clients is the time between two pieces of an answer, so it is no deadline of a stream.
Milliseconds deadline_of(const RequestHead& head, double seconds, bool streams) {
  const Milliseconds longest(static_cast<int64_t>(1000 * seconds));
  const Milliseconds stated = seconds_of(head.find("x-request-timeout"), longest);
  const Milliseconds read = streams ? longest : seconds_of(head.find("x-stainless-read-timeout"), longest);
  return std::min({longest, stated, read});
}

RejectReason reason_of(const std::string& code) {
  if (code == "too_many_tokens") return RejectReason::tokens;
  if (code == "client_limit") return RejectReason::client;
  if (code == "expected_wait") return RejectReason::deadline;
  if (code == "bodies" || code == "answers" || code == "memory") return RejectReason::memory;
  return code == "draining" ? RejectReason::draining : RejectReason::queue;
}

void throw_model_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    throw HttpError(500, e.what());
  }
}

Call::Call(Service& service, std::shared_ptr<Exchange> exchange, std::shared_ptr<RequestTrack> track)
    : service_(service),
      exchange_(std::move(exchange)),
      track_(std::move(track)),
      client_(track_->client),
      salt_(track_->has_key ? client_ : ""),
      deadline_(deadline_of(exchange_->head(), service.options().deadline, false)),
      timer_(service.prepare_context()),
      silence_(service.prepare_context()) {}

std::string Call::query(std::string_view name) const {
  for (const auto& [field, value] : head().target.query)
    if (field == name) return value;
  return "";
}

void Call::start() {
  proceed([&] {
    service_.add_call(shared_from_this());
    set_timer();
    service_.run(shared_from_this(), body().size(), [](const CallPtr& call) { call->route().answer(call); });
  });
}

void Call::will_stream() {
  if (!Service::is_prepare_thread())
    return service_.leave(shared_from_this(), [](const CallPtr& call) { call->will_stream(); });
  deadline_ = deadline_of(head(), service_.options().deadline, true);
  set_timer();
}

void Call::set_timer() {
  timer_.expires_at(arrived_ + deadline_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->proceed([&] { self->expire(); });
  });
}

void Call::end(Outcome outcome) {
  if (ended_.exchange(true)) return;
  const auto self = weak_from_this().lock();  // the service forgets it here
  track_->end(outcome);
  count(outcome);
  if (const auto work = std::exchange(work_, nullptr); work && outcome != Outcome::done) work->cancel();
  timer_.cancel();
  silence_.cancel();
  service_.remove_call(*this);
}

void Call::use(const ModelPtr& model) {
  model_ = model;
  track_->change([&](RequestRecord& record) { record.model = model->name; });
}

void Call::identify(std::string_view key) {
  if (track_->has_key || !service_.admission().needs_keys()) return;
  if (key.empty()) throw HttpError(400, "Please contact the server operator to get an API key");
  const std::optional<std::string> name = service_.admission().name_of_key(key);
  if (!name) throw HttpError(403, "Invalid API key");
  client_ = salt_ = *name;
  track_->change([&](RequestRecord& record) { record.client = *name; });
}

// Counts the end of the call for its model.
void Call::count(Outcome outcome) {
  if (!model_) return;
  ModelMetrics& metrics = model_->metrics();
  switch (outcome) {
    case Outcome::done:
      return metrics.done();
    case Outcome::failed:
      return metrics.failed();
    case Outcome::expired:
      return metrics.expired();
    case Outcome::rejected:
      return metrics.rejected(reason_);
    case Outcome::cancelled:
      return metrics.cancelled(!work_                 ? CancelStage::sending
                               : work_->has_started() ? CancelStage::running
                                                      : CancelStage::waiting);
  }
}

// The I/O thread logs a request when its answer has been sent, so the outcome is set before the end of the answer.
void Call::reply(HttpReply reply) {
  if (ended_) return;
  if (!Service::is_prepare_thread()) {
    const auto left = std::make_shared<HttpReply>(std::move(reply));
    return service_.leave(shared_from_this(), [left](const CallPtr& call) { call->reply(std::move(*left)); });
  }
  service_.admission().hold_answer(*track_, std::ssize(reply.body), 503);
  track_->end(Outcome::done);
  exchange_->reply(std::move(reply));
  end(Outcome::done);
}

void Call::fail(const HttpError& error, Outcome outcome) {
  if (ended_) return;
  const bool is_rejected = outcome == Outcome::failed && (error.status == 429 || error.status == 503);
  if (is_rejected) outcome = Outcome::rejected;
  track_->end(outcome);
  reason_ = reason_of(error.code);
  if (!run_unless_out_of_memory([&] { send_error(error); })) abandon();
  end(outcome);
}

void Call::fail(std::exception_ptr error) {
  if (run_unless_out_of_memory([&] { fail(http_error(error)); })) return;
  abandon();
  end(Outcome::failed);
}

void Call::send_error(const HttpError& error) {
  if (!streams_) return exchange_->reply(error_reply(route().family, error));
  exchange_->send("data: " + error_json(error) + "\n\n");
  exchange_->end();  // browsers would lose the event if the stream were cut
}

void Call::expire() {
  if (streams_) return;  // the client has a part of the answer
  const std::string seconds = fmt::format("{:g}", static_cast<double>(deadline_.count()) / 1000);
  HttpError error(504, fmt::format("deadline of {} s passed", seconds), "deadline");
  if (work_ && !work_->has_started())
    error =
        HttpError(503, fmt::format("deadline of {} s passed while waiting", seconds), "expired", Milliseconds(1000));
  fail(error, Outcome::expired);
}

void Call::cancel() { end(Outcome::cancelled); }

void Call::send(const std::string& bytes) {
  exchange_->send(bytes);
  schedule_comment();
  if (!work_ || exchange_->unsent() <= kPauseAt || std::exchange(paused_, true)) return;
  work_->pause(true);
  exchange_->call_when_below(kContinueAt, [weak = weak_from_this(), &service = service_] {
    service.post_to(weak, [](const CallPtr& call) {
      call->paused_ = false;
      call->work_->pause(false);
    });
  });
}

void Call::send_event(const std::string& json) {
  if (ended_) return;
  if (!Service::is_prepare_thread())
    return service_.leave(shared_from_this(), [json](const CallPtr& call) { call->send_event(json); });
  if (!streams_) exchange_->begin({200, "text/event-stream; charset=utf-8", "", {{"X-Accel-Buffering", "no"}}});
  streams_ = true;
  send("data: " + json + "\n\n");
}

void Call::end_events() {
  if (ended_) return;
  if (!Service::is_prepare_thread())
    return service_.leave(shared_from_this(), [](const CallPtr& call) { call->end_events(); });
  track_->end(Outcome::done);
  exchange_->send("data: [DONE]\n\n");
  exchange_->end();
  end(Outcome::done);
}

// Shows the client and proxies that the stream is alive.
void Call::schedule_comment() {
  silence_.expires_after(kSilence);
  silence_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->proceed([&] { self->send(":\n\n"); });
  });
}

}  // namespace qkv
