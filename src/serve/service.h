// The service behind the HTTP server: decides which requests it takes, hands them to models, and answers.
//
// Threads: the I/O thread calls admit, handle and refusal. The prepare thread runs everything of a call: it reads
// JSON, converts text to tokens, and formats results. Compute threads step the models. Functions that other threads
// may call say so.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "qkv/server.h"
#include "serve/call.h"
#include "serve/http_server.h"
#include "serve/served_model.h"

namespace qkv {

using ModelPtr = std::shared_ptr<ServedModel>;

class Service : public HttpHandler {
 public:
  Service(std::vector<ServedRun> runs, ServerOptions options);
  ~Service() override;

  // I/O thread.
  Grant admit(const RequestHead& head, const std::string& client) override;
  void handle(std::shared_ptr<Exchange> exchange) override;
  HttpReply refusal(const HttpError& error, const RequestHead* head) override;

  // Any thread: loads all runs, after which requests are answered. Throws Error, naming the file.
  void load();
  // Any thread. While requests drain, /health/ready says so.
  void begin_draining() { draining_ = true; }
  // Any thread: cancels what has not ended.
  void cancel_all();
  bool is_draining() const { return draining_; }
  bool is_loading() const { return loading_; }
  // Returns whether a compute thread has been in one step for a minute.
  bool is_stuck() const;
  size_t open_calls() const { return open_calls_; }

  // Any thread: runs a function on the prepare thread.
  template <class Function>
  void post(Function&& function) {
    boost::asio::post(prepare_, std::forward<Function>(function));
  }

  // Prepare thread.
  const ServerOptions& options() const { return options_; }
  boost::asio::io_context& prepare_context() { return prepare_; }
  const std::vector<ModelPtr>& models() const { return models_; }
  // Returns the model of this name that `serves`, or the only one if the name is empty. Throws HttpError 404.
  template <class Serves>
  ModelPtr find_model(const std::string& name, std::string_view kind, Serves&& serves) const {
    std::vector<ModelPtr> found;
    for (const ModelPtr& model : models_)
      if (serves(*model) && (name.empty() || model->name == name)) found.push_back(model);
    return only_model(found, name, kind);
  }
  ModelPtr translator(const std::string& name) const;
  ModelPtr generator(const std::string& name) const;
  ModelPtr recommender(const std::string& name) const;
  ModelPtr embedder(const std::string& name) const;

  void add_call(const CallPtr& call);
  void remove_call(Call& call);

 private:
  static ModelPtr only_model(const std::vector<ModelPtr>& found, const std::string& name, std::string_view kind);
  void check_body(const RequestHead& head, const Route& route) const;
  void run_prepare_thread();

  const ServerOptions options_;
  const std::vector<ServedRun> runs_;
  ClientCounts clients_;
  std::atomic<bool> loading_ = true, draining_ = false;
  std::atomic<int64_t> body_bytes_ = 0;  // of bodies that are being read or wait
  std::atomic<size_t> open_calls_ = 0;
  std::map<const Call*, CallPtr> calls_;
  std::vector<std::unique_ptr<ComputeThread>> compute_;
  std::vector<ModelPtr> models_;
  boost::asio::io_context prepare_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{prepare_.get_executor()};
  std::thread thread_;
};

}  // namespace qkv
