#include "fuzz/served.h"

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "fuzz/reader.h"
#include "fuzz/tiny_runs.h"
#include "serve/engine/service.h"
#include "tests/support/temp_dir.h"
#include "text/unicode.h"

namespace qkv::fuzz {
namespace {

constexpr std::chrono::seconds kPatience{20};
const std::string kClient = "fuzz";

// A client that reads the answer.
class Client : public ReplySink {
 public:
  void send(std::string bytes, bool last, bool) override {
    const std::lock_guard lock(mutex_);
    arrived_ += bytes;
    is_complete_ |= last;
    changed_.notify_one();
  }

  // Reads a piece of the answer. Returns whether more follows.
  bool read(Exchange& exchange) {
    std::unique_lock lock(mutex_);
    const auto has_news = [&] { return is_complete_ || arrived_.size() > answer.size(); };
    require(changed_.wait_for(lock, kPatience, has_news), "a request is answered");
    const size_t size = arrived_.size() - answer.size();
    answer = arrived_;
    const bool more = !is_complete_;
    lock.unlock();
    exchange.take_sent(size);
    return more;
  }

  std::string answer;  // what has been read

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string arrived_;
  bool is_complete_ = false;
};

// Limits that keep the work for an input small.
ServerOptions limits_of(const testing::TempDir& directory) {
  ServerOptions options;
  options.runs = make_tiny_runs(directory.path());
  options.languages = {"mt=en-de"};
  options.chat_template = {"lm=plain"};
  options.events = directory / "events.tsv";
  options.threads = 1;
  options.rows = 16;
  options.cache = 1 << 20;
  options.max_body = 16 << 10;
  options.max_text = 200;
  options.max_texts = 8;
  options.max_tokens = 12;
  options.max_beam = 4;
  options.log = LogFormat::none;
  return options;
}

class TinyServer {
 public:
  TinyServer() : service_(limits_of(directory_)) {
    service_.load();
    service_.post([this] { models_ = service_.models(); });
    wait_for_prepare_thread();
  }

  // Sends a request. Returns its answer, or what had arrived when the client left after this many pieces.
  std::string send(const std::string& head, const std::string& body, int pieces) {
    RequestReader reader;
    reader.put(head);
    require(reader.has_head(), "the head of a request is complete");
    const auto client = std::make_shared<Client>();
    Grant grant;
    try {
      service_.admit(reader.head(), kClient, grant);
      reader.read_body(grant.most_body);
      reader.put(body);
      require(reader.is_done(), "a request is complete");
      const auto exchange =
          std::make_shared<Exchange>(reader.head(), reader.body(), kClient, framing(), std::move(grant), client);
      service_.handle(exchange);
      bool more = true;
      while (more && pieces-- > 0) more = client->read(*exchange);
      exchange->finish(more);
      service_.ended(*exchange);
      check_idle(exchange);
    } catch (const HttpError& error) {
      const HttpReply reply = service_.refusal({error, &reader.head(), kClient, kClient, grant.hold});
      return head_text(reply, framing()) + reply.body;
    }
    return client->answer;
  }

 private:
  // Answers of HTTP/1.0 are not cut into chunks.
  static ReplyFraming framing() { return {kClient, 0, false}; }

  void wait_for_prepare_thread() {
    std::promise<void> reached;
    service_.post([&] { reached.set_value(); });
    require(reached.get_future().wait_for(kPatience) == std::future_status::ready, "no thread is stuck");
  }

  bool is_idle(const std::shared_ptr<Exchange>& exchange) {
    wait_for_prepare_thread();
    for (const ModelPtr& model : models_)
      if (model->queue.waiting() + model->queue.running() + model->queue.waiting_cost() != 0 ||
          model->cache_sources().cache_reserved() != 0)
        return false;
    return exchange.use_count() == 1;  // the service has forgotten the request
  }

  void check_idle(const std::shared_ptr<Exchange>& exchange) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!is_idle(exchange))
      require(std::chrono::steady_clock::now() < end, "nothing waits, runs or is reserved after a request");
  }

  const testing::TempDir directory_;
  Service service_;
  std::vector<ModelPtr> models_;
};

// An event is JSON or a comment; the last one says that there are no more. An error in a stream is not the server's.
void check_events(std::string_view events) {
  while (!events.empty()) {
    const size_t end = events.find("\n\n");
    require(end != events.npos, "an event ends with an empty line");
    std::string_view event = events.substr(0, end);
    events.remove_prefix(end + 2);
    require(event.starts_with("data: ") && event.find('\n') == event.npos, "an event is one line of data");
    event.remove_prefix(6);
    if (event == "[DONE]") return require(events.empty(), "nothing follows the end of a stream");
    const nlohmann::json value = parse_json(event, "event");
    require(!value.contains("error") || value["error"]["type"] != "server_error", "an error is not the server's");
  }
}

void check_answer(std::string_view answer) {
  const size_t end = answer.find("\r\n\r\n");
  require(end != answer.npos && answer.starts_with("HTTP/1.1 "), "an answer begins with a head");
  const std::string_view head = answer.substr(0, end), body = answer.substr(end + 4);
  const char kind = head[9];
  if (kind != '2' && kind != '4') std::fprintf(stderr, "qkv: the answer: %.*s\n", int(answer.size()), answer.data());
  require(kind == '2' || kind == '4', "the status is 2xx or 4xx");
  require(find_invalid_utf8(std::string(body)) == std::string::npos, "an answer is UTF-8");
  if (head.find("text/event-stream") != head.npos)
    must_succeed([&] { check_events(body); });
  else if (head.find("application/json") != head.npos)
    must_succeed([&] { parse_json(body, "answer"); });
  else
    require(kind == '4' && body.ends_with('\n') && body.find('\n') + 1 == body.size(), "a text is an error's line");
}

}  // namespace

void serve(const Served& request, std::string_view body) {
  static std::unique_ptr<TinyServer> server;
  if (!server) must_succeed([] { server = std::make_unique<TinyServer>(); });
  const bool has_body = request.method != "GET";
  const std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n", request.method,
                  request.target, request.type, has_body ? body.size() : 0);
  const std::string sent(has_body ? body : "");
  check_answer(server->send(head, sent, INT32_MAX));
  if (body.size() % 4 == 0) server->send(head, sent, body.size() % 8 == 0 ? 0 : 1);
}

}  // namespace qkv::fuzz
