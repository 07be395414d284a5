// The service behind the HTTP server: hands requests that have been admitted to models, and answers.
//
// Threads: the I/O thread calls the functions of HttpHandler. The prepare thread runs everything of a call that takes
// little time. Text threads run the parts whose time grows with a long text: reading JSON, converting text to tokens,
// formatting results. Compute threads step the models. Functions that other threads may call say so.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "serve/engine/admission.h"
#include "serve/engine/api_family.h"
#include "serve/engine/call.h"
#include "serve/engine/served_model.h"
#include "serve/engine/text_threads.h"
#include "serve/http/http_server.h"
#include "serve/http/out_of_memory.h"
#include "serve/metrics/metrics.h"

namespace qkv {

class Service : public HttpHandler {
 public:
  // Throws Error for options that are not valid.
  explicit Service(const ServerOptions& options);
  ~Service() override;

  // I/O thread.
  void admit(const RequestHead& head, const std::string& peer, Grant& grant) override {
    admission_.admit(head, peer, grant);
  }
  void handle(std::shared_ptr<Exchange> exchange) override;
  HttpReply refusal(const Refusal& refused) override { return admission_.refusal(refused); }
  void ended(const Exchange& exchange) override { admission_.ended(exchange); }
  void handshake_failed(const std::string& peer) override { admission_.handshake_failed(peer); }
  bool is_proxy(const std::string& address) const override { return admission_.is_proxy(address); }
  bool keeps_alive() const override { return !draining_; }

  // Which requests are taken. Each function says which threads may call it.
  Admission& admission() { return admission_; }
  const Admission& admission() const { return admission_; }
  // Any thread: what the server counts of connections.
  void read_connections_from(ServerSources sources) { metrics_.read_from(std::move(sources)); }

  // Any thread: loads all runs, after which requests are answered. Returns a line for each table of titles that fits no
  // item. Throws Error, naming the file.
  std::vector<std::string> load();
  // Any thread: reads keys and runs again. Returns a line for each that is not sound, where what was there stays, and
  // the lines of load.
  std::vector<std::string> reload();
  // Any thread: from now on answers end their connections, and /health/ready says that the server will end.
  void begin_draining() { draining_ = true; }
  // Any thread: answers what has not ended with status 503, and refuses what arrives. Returns how many there were.
  int64_t cancel_all();
  bool is_draining() const { return draining_; }
  bool is_loading() const { return admission_.is_loading(); }
  bool is_stuck() const;  // a compute thread has been in one step for a minute
  std::string metrics_text() const { return metrics_.text(); }

  // Any thread: runs a function on the prepare thread.
  template <class Function>
  void post(Function&& function) {
    boost::asio::post(prepare_, std::forward<Function>(function));
  }

  // Returns a function (CallbackBatch) that continues a call, unless it has ended by then (Call::proceed), or gives it
  // up.
  template <class Function>
  static auto continuation(std::weak_ptr<Call> call, Function function) {
    return [call = std::move(call), function = std::move(function)](bool lost) mutable {
      const CallPtr alive = call.lock();
      if (!alive) return;
      lost ? alive->abandon() : alive->proceed([&] { function(alive); });
    };
  }

  // Any thread: continues a call on the prepare thread. Without memory it is given up.
  template <class Function>
  void post_to(std::weak_ptr<Call> call, Function function) {
    auto next = continuation(std::move(call), std::move(function));
    if (!run_unless_out_of_memory([&] { post([next]() mutable { next(false); }); })) next(true);
  }

  // Calls a function of a call whose time grows with these bytes: at once if they are few, otherwise on a text thread.
  // There it may read the call and the service, and do what a call does by itself; all else it leaves to the prepare
  // thread. An exception is the answer.
  using Part = std::function<void(const CallPtr&)>;
  void run(const CallPtr& call, size_t bytes, Part function);
  // Prepare thread, or another one that a part of the call runs on: calls a function on the prepare thread, once that
  // part has ended.
  void leave(const CallPtr& call, Part function);
  // Whether this is the prepare thread of a service.
  static bool is_prepare_thread() { return is_prepare_thread_; }
  // Text thread: throws an exception, which nobody sees, if the call that this thread works for has ended.
  static void check_wanted();

  // Prepare thread and text threads.
  const ServerOptions& options() const { return options_; }
  boost::asio::io_context& prepare_context() { return prepare_; }
  std::vector<ModelPtr> models() const {
    const std::lock_guard lock(models_mutex_);
    return models_;
  }
  // Returns the model of this name that `serves`, or the only one if the name is empty. Throws HttpError 404.
  template <class Serves>
  ModelPtr find_model(const std::string& name, std::string_view kind, Serves&& serves) const {
    std::vector<ModelPtr> found;
    for (const ModelPtr& model : models())
      if (serves(*model) && (name.empty() || model->name == name)) found.push_back(model);
    return only_model(found, name, kind);
  }
  ModelPtr translator(const std::string& name) const;
  ModelPtr generator(const std::string& name) const;
  ModelPtr recommender(const std::string& name) const;
  ModelPtr embedder(const std::string& name) const;
  ModelPtr classifier(const std::string& name) const;

  // Returns what a family keeps, by its type.
  template <class State>
  State& state() const {
    for (const auto& state : states_)
      if (auto* found = dynamic_cast<State*>(state.get())) return *found;
    throw std::logic_error("no family has this state");
  }

  void add_call(const CallPtr& call);
  void remove_call(Call& call);

 private:
  static ModelPtr only_model(const std::vector<ModelPtr>& found, const std::string& name, std::string_view kind);
  void run_long(const CallPtr& call, size_t bytes, Part function);
  ModelPtr find_model(const std::string& name, std::string_view kind, ModelUse use) const;
  ModelPtr load_run(size_t number);
  ModelPtr make_chain(size_t number, const std::vector<ModelPtr>& models);
  std::vector<ComputeThread*> workers_of(size_t number, const ServedModel& model) const;
  void start(size_t number, const ModelPtr& model);
  void replace(size_t number, const ModelPtr& model);
  void drop_retired();

  const ServerOptions options_;
  const std::vector<ServedRun> runs_;
  ClientCounts clients_;
  Metrics metrics_;
  std::atomic<bool> draining_ = false;
  ThreadBudget share_;
  std::vector<std::unique_ptr<ComputeThread>> compute_;
  mutable std::mutex models_mutex_;
  std::vector<ModelPtr> models_;   // under the mutex
  std::vector<ModelPtr> retired_;  // replaced, and used by calls that have not ended
  Admission admission_;
  boost::asio::io_context prepare_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{prepare_.get_executor()};
  boost::asio::steady_timer cleaning_{prepare_};
  std::map<const Call*, CallPtr> calls_;
  static inline thread_local bool is_prepare_thread_ = false;
  std::thread thread_;
  std::vector<std::unique_ptr<FamilyState>> states_;  // end early: threads of their files post to this service
  std::optional<TextThreads> texts_;                  // ends first, as calls that run there use all else
};

}  // namespace qkv
