// An HTTP server for runs: `qkv serve` as a library. docs/serve.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace qkv {

// Times are in seconds, sizes in bytes.
struct ServerOptions {
  std::vector<std::string> listen = {};
  bool embed = false;
  int64_t threads = 0;
  int64_t workers = 1;
  int64_t rows = 256;
  int64_t cache = int64_t{1} << 30;
  int64_t queue_items = 256;
  int64_t queue_tokens = 65536;
  int64_t client_items = 0;
  int64_t max_body = int64_t{2} << 20;
  int64_t bodies = int64_t{64} << 20;
  int64_t max_text = 16384;
  int64_t max_texts = 256;
  int64_t max_tokens = 4096;
  int64_t max_beam = 16;
  double deadline = 60;
  int64_t max_connections = 1024;
  double header_timeout = 10, body_timeout = 30, idle_timeout = 75, write_timeout = 30;
  double drain_delay = 0, drain_timeout = 30;
};

// A run to serve.
struct ServedRun {
  std::string run;
  std::string name = "";       // "": the last part of the directory
  std::string languages = "";  // such as "en-de"; "": from the name or directory, else "und-und"
  std::string titles = "";     // a table of titles of items
  // How conversations become prompts: chatml, llama2, llama3, mistral, zephyr or plain; "": no conversations.
  std::string chat_template = "";
};

class Server {
 public:
  Server(std::vector<ServedRun> runs, const ServerOptions& options);
  ~Server();

  // Listens on all addresses, and returns them with the ports that were taken. Throws Error for one that cannot be
  // used.
  std::vector<std::string> listen();
  // Answers requests on the calling thread until drain or stop has been called and the last connection has ended.
  void serve();

  // The following may be called from any thread.

  // Loads the runs. Until then requests are answered with status 503. Throws Error, naming the file.
  void load();
  // Accepts no more connections, and finishes the requests that have arrived.
  void drain();
  // Cancels the requests that have not ended.
  void cancel();
  // Closes all connections.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
