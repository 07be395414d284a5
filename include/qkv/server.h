// The HTTP server, `qkv serve`. docs/serve.md describes its routes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/field.h"

namespace [[gnu::visibility("default")]] qkv {

// How requests are logged: as names and values, as JSON, or not at all.
enum class LogFormat { text, json, none };
constexpr std::array<std::string_view, 3> names_of(LogFormat) { return {"text", "json", "none"}; }

// Sizes are in bytes, times in seconds. visit_fields below describes every field.
struct ServerOptions {
  std::vector<std::string> runs = {};

  std::vector<std::string> listen = {};
  std::string metrics_listen = "";
  std::string tls_cert = "", tls_key = "";
  int64_t max_connections = 1024;
  double header_timeout = 10, body_timeout = 30, idle_timeout = 75, write_timeout = 30;

  std::vector<std::string> pivot = {};
  std::vector<std::string> languages = {};
  std::vector<std::string> titles = {};
  std::vector<std::string> glossary = {};
  std::vector<std::string> chat_template = {};
  bool embed = false;

  int64_t threads = 0;
  int64_t workers = 0;
  int64_t rows = 256;
  int64_t cache = int64_t{1} << 30;

  int64_t queue_items = 256, queue_tokens = 131072;
  int64_t client_items = 0;
  double deadline = 60;

  int64_t max_body = 2 << 20, bodies = 64 << 20;
  int64_t max_text = 16384, max_texts = 256, max_inputs = 2048;
  int64_t max_tokens = 0;
  int64_t max_beam = 16;

  std::string api_keys = "";
  std::vector<std::string> allow_host = {}, cors_origin = {}, trust_proxy = {};

  double drain_delay = 0, drain_timeout = 30;

  LogFormat log = LogFormat::text;
  bool no_page = false;
  std::string suggestions = "", events = "";
  bool no_files = false;

  bool operator==(const ServerOptions&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines the command line and the JSON of --config.
template <class Visitor>
void visit_fields(ServerOptions& o, Visitor&& visit) {
  constexpr Range kCount = between(1, 1 << 24), kDay = between(0, 86'400);

  visit("runs", o.runs,
        {"Runs to serve, each RUN or NAME=RUN; a name is by default the last part of the path", "models", {}, kCommon});
  visit("pivot", o.pivot,
        {"Model that translates through a language in between, as NAME=FIRST,SECOND with the names of two or more "
         "translators, or NAME:de-en for one with several languages; the second one translates what the first one has "
         "translated",
         "models",
         {},
         kCommon});
  visit("languages", o.languages,
        {"Languages of a translator as clients name them, as NAME=en-de; by default those that the name or the "
         "directory of the run ends in",
         "models",
         {},
         kCommon});
  visit("titles", o.titles, {"Titles of a recommender's items, as NAME=FILE", "models", {}, kCommon});
  visit("glossary", o.glossary,
        {"Terms that the translations of a translator must have unless a request has a glossary, as NAME=FILE: lines of "
         "a source term, a tab and its translation",
         "models",
         {},
         kCommon});
  visit("chat_template", o.chat_template,
        {"How a language model reads a conversation, as NAME=TEMPLATE with one of chatml, llama2, llama3, mistral, "
         "zephyr and plain, the name of a template of the model, or a file FILE.jinja; by default the model's own "
         "template",
         "models",
         {},
         kCommon});
  visit("embed", o.embed, {"Let translators and language models answer requests for embeddings too", "models"});

  visit("listen", o.listen,
        {"Address to listen on, HOST:PORT or unix:PATH; port 0 takes a free one; by default 127.0.0.1:8080",
         "connections",
         {},
         kCommon});
  visit("metrics_listen", o.metrics_listen,
        {"Address of /metrics, which is then not available at the others and needs no key", "connections"});
  visit("tls_cert", o.tls_cert,
        {"File with the certificate of the server in PEM, followed by those that lead to its root; the addresses of "
         "listen that have a port then speak HTTPS. Read again on SIGHUP",
         "connections"});
  visit("tls_key", o.tls_key, {"File with the key of tls_cert in PEM, without a password", "connections"});
  visit("max_connections", o.max_connections,
        {"Maximum number of open connections; further ones are closed at once", "connections", between(1, 1 << 20)});
  visit("header_timeout", o.header_timeout,
        quantity({"Time for a client to send the head of a request", "connections", kDay.without_min()}));
  visit("body_timeout", o.body_timeout,
        quantity({"Time for a client to send the body of a request", "connections", kDay.without_min()}));
  visit("idle_timeout", o.idle_timeout,
        quantity({"Time until a connection without a request is closed", "connections", kDay.without_min()}));
  visit("write_timeout", o.write_timeout,
        quantity({"Time without a byte that the client takes until its connection is closed", "connections",
                  kDay.without_min()}));

  visit("threads", o.threads, {"Threads that compute; 0 is one per processor", "execution", between(0, 1024)});
  visit("workers", o.workers,
        {"Number of models computed at the same time, which share the threads; 0 is one per thread, at most 4, and one "
         "for each language model",
         "execution", between(0, 1024)});
  visit("rows", o.rows, {"Hypotheses of a model that a step extends", "execution", kCount});
  visit("cache", o.cache,
        quantity({"Memory for keys and values of all models; a text starts when what it may need is free", "execution",
                  at_least(1 << 20)}));

  visit("queue_items", o.queue_items,
        {"Maximum number of texts of a client that wait for a model; beyond it requests are refused with 429. All "
         "clients "
         "together may have four times as many waiting",
         "queues", kCount});
  visit("queue_tokens", o.queue_tokens,
        {"Maximum number of tokens of a client that wait for a model, with those that may be generated; a request that "
         "needs more is refused with 400. All clients together may have four times as many waiting",
         "queues", between(1, 1e12)});
  visit("client_items", o.client_items,
        {"Maximum number of texts of a client that wait or run; a client is a key or, without keys, an address; 0 "
         "is no limit",
         "queues", between(0, 1 << 24)});
  visit("deadline", o.deadline,
        quantity({"Time from the arrival of a request until it is given up", "queues", kDay.without_min(), kCommon}));

  visit("max_body", o.max_body,
        quantity({"Maximum size of the body of a request", "requests", between(1 << 10, 1 << 30), kCommon}));
  visit("bodies", o.bodies,
        quantity({"Maximum size of all bodies that are being read or wait; beyond it requests are refused with 429",
                  "requests", between(1 << 10, 0x1p40)}));
  visit("max_text", o.max_text,
        {"Maximum number of characters of a text to translate; other texts are limited by the model's context",
         "requests", between(1, 1 << 28)});
  visit("max_texts", o.max_texts,
        {"Maximum number of texts of a request, each counted as often as it has choices", "requests", kCount});
  visit("max_inputs", o.max_inputs,
        {"Maximum number of texts of a request to embed, classify, rerank or tokenize", "requests", kCount});
  visit("max_tokens", o.max_tokens,
        {"Maximum number of tokens generated for a text; 0 means the model's context, at least 4096", "requests",
         between(0, 1 << 24)});
  visit("max_beam", o.max_beam, {"Maximum beam of a translation", "requests", between(1, 1024)});

  visit("api_keys", o.api_keys,
        {"File with keys of clients, one per line as NAME KEY; read again on SIGHUP", "access", {}, kCommon});
  visit("allow_host", o.allow_host,
        {"Further name that clients may use for this server; * allows all. Names of the addresses listened on, "
         "localhost and IP addresses are always allowed",
         "access"});
  visit("cors_origin", o.cors_origin, {"Site whose pages may use this server, as https://example.org", "access"});
  visit("trust_proxy", o.trust_proxy,
        {"Address or network of a proxy, such as 10.0.0.0/8, whose X-Forwarded-For is believed; unix is any proxy "
         "on a socket with a path",
         "access"});

  visit("drain_delay", o.drain_delay,
        quantity({"Time after SIGTERM in which requests are still accepted, while /health/ready reports 503",
                  "shutdown", kDay}));
  visit("drain_timeout", o.drain_timeout,
        quantity({"Time for requests to end after drain_delay; the rest is then cancelled", "shutdown", kDay}));

  visit("log", o.log, {"How requests are logged to standard error", "output", {}, kCommon});
  visit("no_page", o.no_page, {"Do not serve the page at /", "output"});
  visit("suggestions", o.suggestions,
        {"File that suggestions for better translations are appended to; without it /suggest is off", "output"});
  visit("events", o.events,
        {"File that events of /api/feedback are appended to; without it they are refused", "output"});
  visit("no_files", o.no_files, {"Do not translate files (/translate_file)", "output"});
}

// Throws Error, naming the field, for a value outside its range, bodies less than max_body, tls_cert without tls_key,
// and runs whose names are invalid or the same.
void check(const ServerOptions& options);

// Changes options by a JSON object with some of their names; sizes and times may be text with a unit, such as "2M".
// Throws Error, naming `where` and the field, for unknown names and invalid values, and leaves the options as they
// were.
void merge_server_json(ServerOptions& options, const std::string& text, const std::string& where);

// Answers HTTP requests with runs. All functions may be called from any thread, serve by one.
class Server {
 public:
  // Throws Error for an option that is not valid, a name that stands for two runs, and a file of keys or a certificate
  // that cannot be read.
  explicit Server(const ServerOptions& options);
  ~Server();

  // Listens on all addresses, and returns them with the ports that were taken. sockets: descriptors of sockets that
  // listen already, which come first; the server closes them. The default address is used if there are neither. Throws
  // Error for an address or a socket that cannot be used.
  std::vector<std::string> listen(const std::vector<int>& sockets = {});
  // Answers requests until drain or stop has been called and the last connection has ended.
  void serve();
  // Loads the runs. Until then requests are answered with status 503. Returns a line for each table of titles that fits
  // no item of its run. Throws Error, naming the file.
  std::vector<std::string> load();
  // Reads the file of keys, the certificate and the runs again. A run that is sound takes over for new requests.
  // Returns a line for each file that is not, where what was there stays, and the lines of load.
  std::vector<std::string> reload();

  // Ends in three steps: refuse_ready makes /health/ready say that the server will end; drain accepts no more
  // connections and finishes the requests that have arrived; cancel answers those that have not ended with status 503,
  // and returns how many there were.
  void refuse_ready();
  void drain();
  int64_t cancel();
  // Closes all connections at once.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
