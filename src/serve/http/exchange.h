// A request that waits for its answer. The server makes one for each request and hands it to the handler, which may
// answer at once or later, from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "serve/http/http_reply.h"
#include "serve/http/request_reader.h"

namespace qkv {

// Where answers go: the connection.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Sends bytes of the answer. Called on any thread, in the order of the answer. last: nothing follows; broken: the
  // connection ends here, so that the client sees an incomplete answer.
  virtual void send(std::string bytes, bool last, bool broken) = 0;
};

// The size that a body may have, and what is held for a request.
struct Grant {
  uint64_t most_body = 0;  // bytes
  // Kept until the request has been answered, or its client has left.
  std::shared_ptr<void> hold = nullptr;
  std::vector<std::pair<std::string, std::string>> headers = {};  // of the answer, in addition to its own
};

class Exchange {
 public:
  Exchange(RequestHead head, std::string body, std::string client, ReplyFraming framing, Grant grant,
           std::weak_ptr<ReplySink> connection, bool is_secure = false)
      : head_(std::move(head)),
        body_(std::move(body)),
        client_(std::move(client)),
        framing_(std::move(framing)),
        grant_(std::move(grant)),
        connection_(std::move(connection)),
        is_secure_(is_secure) {}

  const RequestHead& head() const { return head_; }
  const std::string& body() const { return body_; }
  const std::string& client() const { return client_; }  // its address
  const std::string& id() const { return framing_.id; }
  bool is_secure() const { return is_secure_; }  // by TLS of this server
  const std::shared_ptr<void>& hold() const { return grant_.hold; }
  int status() const { return status_; }       // of the answer; 0 if there is none yet
  size_t sent_bytes() const { return sent_; }  // of the answer, handed over so far

  // Answers the request. One thread answers, either by reply or by begin, any number of sends, and end.
  void reply(HttpReply reply);
  void begin(const HttpReply& head);  // its body is ignored
  void send(const std::string& bytes);
  void end();

  // Bytes that are not sent yet, because the client reads slowly.
  size_t unsent() const { return unsent_.load(); }
  // Calls a function once, on the I/O thread or at once, when fewer bytes than these are unsent.
  void call_when_below(size_t bytes, std::function<void()> call);
  // Gives the answer up, because there is no memory for it: the connection closes soon. Any thread; never throws.
  void abandon() { abandoned_ = true; }
  bool is_abandoned() const { return abandoned_.load(); }
  // Whether the client has left.
  bool is_gone() const { return gone_.load(); }
  // Sets what is called on the I/O thread when the client leaves before the answer is complete; at most once.
  void on_gone(std::function<void()> call) { call_gone_ = std::move(call); }

  // Called by the connection, on the I/O thread: when the client has taken bytes of the answer, and once at the end.
  // The client has left if it did not wait for a complete answer.
  void take_sent(size_t bytes);
  void finish(bool client_left);

 private:
  void put(std::string bytes, bool last, bool broken = false);
  HttpReply with_headers(const HttpReply& reply) const;  // without its body
  bool has_body() const { return head_.method != "HEAD"; }

  RequestHead head_;
  std::string body_, client_;
  ReplyFraming framing_;
  const Grant grant_;
  std::weak_ptr<ReplySink> connection_;
  const bool is_secure_;
  std::atomic<size_t> unsent_ = 0, sent_ = 0;
  std::atomic<int> status_ = 0;
  std::atomic<bool> gone_ = false, abandoned_ = false;
  std::function<void()> call_gone_;
  std::mutex mutex_;  // of the following
  std::function<void()> call_below_;
  size_t below_ = 0;
};

}  // namespace qkv
