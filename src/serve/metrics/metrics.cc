#include "serve/metrics/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/fail.h"
#include "core/system/isa.h"
#include "core/to_size.h"
#include "serve/metrics/metric_families.h"

namespace qkv {
namespace {

// Counters or gauges that are built for one answer.
class ScrapedFamily {
 public:
  ScrapedFamily(prometheus::MetricType type, std::string name, std::string help);

  // Adds a value to the series with these labels, which is new or has been added before.
  ScrapedFamily& add(double value, const prometheus::Labels& labels = {});

  const prometheus::MetricFamily& family() const { return family_; }

 private:
  prometheus::MetricFamily family_;
};

ScrapedFamily::ScrapedFamily(prometheus::MetricType type, std::string name, std::string help)
    : family_{std::move(name), std::move(help), type, {}} {}

ScrapedFamily& ScrapedFamily::add(double value, const prometheus::Labels& labels) {
  std::vector<prometheus::ClientMetric::Label> wanted;
  for (const auto& [name, text] : labels) wanted.push_back({name, text});
  auto& series = family_.metric;
  auto place = std::find_if(series.begin(), series.end(), [&](const auto& known) { return known.label == wanted; });
  if (place == series.end()) {
    place = series.emplace(series.end());
    place->label = std::move(wanted);
  }
  (family_.type == prometheus::MetricType::Counter ? place->counter.value : place->gauge.value) += value;
  return *this;
}

// ---- The process

double cpu_seconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_bytes() {
  double total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;  // pages
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code error;
  double count = 0;
  std::filesystem::directory_iterator files("/proc/self/fd", error), end;
  for (; !error && files != end; files.increment(error)) count++;
  return count > 0 ? count - 1 : 0;  // without the one that lists them
}

double most_descriptors() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<double>(limit.rlim_cur);
}

// The time when the system started, in seconds since 1970, and then that of the process, in ticks after it.
double start_seconds() {
  double boot = 0, ticks = 0;
  std::ifstream system("/proc/stat");
  for (std::string name; system >> name;)
    if (name == "btime") system >> boot;
  std::ifstream process("/proc/self/stat");
  std::string word;
  std::getline(process, word, ')');  // the number, and the name in parentheses
  for (int i = 3; i < 22; i++) process >> word;
  process >> ticks;  // field 22
  return boot + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Reads the metrics that every program reports to Prometheus under the same names: process_cpu_seconds_total,
// process_resident_memory_bytes, process_open_fds, process_max_fds and process_start_time_seconds. A value that the
// system does not give, for want of /proc say, is 0.
std::vector<prometheus::MetricFamily> process_metrics() {
  using enum prometheus::MetricType;
  static const double started = start_seconds();
  return {
      ScrapedFamily(Counter, "process_cpu_seconds_total", "Processor time of the process, in seconds")
          .add(cpu_seconds())
          .family(),
      ScrapedFamily(Gauge, "process_resident_memory_bytes", "Memory of the process, in bytes")
          .add(resident_bytes())
          .family(),
      ScrapedFamily(Gauge, "process_open_fds", "Open file descriptors").add(open_descriptors()).family(),
      ScrapedFamily(Gauge, "process_max_fds", "Limit of open file descriptors").add(most_descriptors()).family(),
      ScrapedFamily(Gauge, "process_start_time_seconds", "Start of the process, in seconds since 1970")
          .add(started)
          .family(),
  };
}

// ---- The server

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricFamily;

const Bounds kRequestSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

constexpr size_t kMostRoutes = 64;
constexpr size_t kFixedSeries = 32;                // at most: those without a route or a model
constexpr size_t kRequestSeries = 250;             // at least: methods and statuses that occur on routes
constexpr size_t kModelGauges = kModelSeries + 4;  // with qkv_model_info, qkv_model_bytes and qkv_cache_bytes

constexpr std::string_view kOther = "other", kOtherModels = "(other)";
constexpr std::array<std::string_view, 7> kMethods = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", kOther};
constexpr std::array kStatuses = {200, 204, 206, 304, 400, 401, 403, 404, 405, 408, 411, 413, 414,
                                  415, 417, 421, 422, 424, 429, 431, 500, 501, 502, 503, 504, 505};
constexpr std::array<std::pair<int, std::string_view>, 10> kMalformed = {{{400, "syntax"},
                                                                          {408, "timeout"},
                                                                          {413, "body_size"},
                                                                          {414, "target_size"},
                                                                          {417, "expectation"},
                                                                          {431, "header_size"},
                                                                          {501, "unsupported"},
                                                                          {505, "version"},
                                                                          {525, "tls"},
                                                                          {0, kOther}}};

double value_of(const std::function<double()>& source) { return source ? source() : 0; }

// How many series are left for models, after those of routes.
size_t series_for_models(size_t routes) {
  return kMostSeries - kFixedSeries - kRequestSeries - routes * (series_of(kRequestSeconds) + 1);
}

}  // namespace

struct Metrics::State {
  struct Model {
    MetricsModel model;
    std::string label;
    ModelMetrics metrics;
    ModelSources sources = {};
  };
  struct Route {
    std::string name;
    Histogram* seconds = nullptr;
    Counter* other = nullptr;  // requests of pairs that came when no series was left
  };

  State(const std::vector<std::string>& route_names, std::vector<MetricsModel> given, int64_t cache_limit_bytes);
  void add_routes(const std::vector<std::string>& names);
  void add_models(std::vector<MetricsModel> given);
  Counter& requests(size_t route, size_t method, size_t status);
  std::vector<MetricFamily> scraped();

  prometheus::Registry registry;
  ModelFamilies families{registry};
  prometheus::Family<Counter>& requests_total =
      counters(registry, "qkv_http_requests_total", "Requests by route, method and status");
  prometheus::Family<Histogram>& request_seconds =
      histograms(registry, "qkv_http_request_duration_seconds",
                 "Time between the first byte of a request and the last of its answer");
  Counter& received = counters(registry, "qkv_http_received_bytes_total", "Bytes received from clients").Add({});
  Counter& sent = counters(registry, "qkv_http_sent_bytes_total", "Bytes sent to clients").Add({});
  Counter& busy =
      counters(registry, "qkv_compute_busy_seconds_total", "Time that compute threads spent in steps").Add({});
  std::array<Counter*, kMalformed.size()> malformed;

  std::map<std::string, size_t, std::less<>> route_numbers;
  std::vector<Route> routes;  // the last is "other"
  std::vector<Model> models;

  std::mutex counted_mutex;  // guards counted and series_left
  std::unordered_map<size_t, Counter*> counted;
  size_t series_left = 0;
  std::mutex sources_mutex;  // guards the sources, and what models have of them
  ServerSources sources;
};

Metrics::State::State(const std::vector<std::string>& route_names, std::vector<MetricsModel> given,
                      int64_t cache_limit_bytes) {
  if (route_names.size() > kMostRoutes) fail("metrics: at most {} routes (are {})", kMostRoutes, route_names.size());
  gauges(registry, "qkv_build_info", "Version and instruction set of the server")
      .Add({{"version", QKV_VERSION}, {"isa", active_isa()}}, 1);
  gauges(registry, "qkv_cache_limit_bytes", "Limit of the bytes of keys and values of all models")
      .Add({}, static_cast<double>(cache_limit_bytes));
  auto& refusals = counters(registry, "qkv_http_malformed_total", "Requests that were not valid HTTP, by reason");
  for (size_t i = 0; i < kMalformed.size(); i++)
    malformed[i] = &refusals.Add({{"reason", std::string(kMalformed[i].second)}});
  add_routes(route_names);
  add_models(std::move(given));
}

void Metrics::State::add_routes(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    route_numbers.emplace(name, routes.size());
    routes.push_back({name});
  }
  routes.push_back({std::string(kOther)});
  for (Route& route : routes) {
    route.seconds = &request_seconds.Add({{"route", route.name}}, kRequestSeconds);
    const std::string other(kOther);
    route.other = &requests_total.Add({{"route", route.name}, {"method", other}, {"code", other}});
  }
}

void Metrics::State::add_models(std::vector<MetricsModel> given) {
  const size_t most = series_for_models(routes.size()) - kModelGauges - kModelHistograms,  // without those of "(other)"
      named = std::min(given.size(), most / kModelGauges), left = most - named * kModelGauges,
               named_histograms = std::min(named, left / kModelHistograms);
  series_left = kRequestSeries + left - named_histograms * kModelHistograms;
  const std::string others(kOtherModels);
  for (size_t i = 0; i < given.size(); i++) {
    const std::string label = i < named ? given[i].name : others;
    ModelMetrics metrics(families, label, i < named_histograms ? label : others);
    models.push_back({std::move(given[i]), label, metrics});
  }
}

Counter& Metrics::State::requests(size_t route, size_t method, size_t status) {
  const std::lock_guard lock(counted_mutex);
  Counter*& counter = counted[(route * kMethods.size() + method) * (kStatuses.size() + 1) + status];
  if (counter) return *counter;
  if (series_left == 0 || (kMethods[method] == kOther && status == kStatuses.size()))
    return *(counter = routes[route].other);
  series_left--;
  const std::string code = status < kStatuses.size() ? std::to_string(kStatuses[status]) : std::string(kOther);
  counter =
      &requests_total.Add({{"route", routes[route].name}, {"method", std::string(kMethods[method])}, {"code", code}});
  return *counter;
}

std::vector<MetricFamily> Metrics::State::scraped() {
  const std::lock_guard lock(sources_mutex);
  using Type = prometheus::MetricType;
  ScrapedFamily connections(Type::Gauge, "qkv_http_connections", "Open connections, with a request or idle"),
      refused(Type::Counter, "qkv_http_connections_refused_total", "Connections that were closed at once: too many"),
      info(Type::Gauge, "qkv_model_info", "Models that are served"),
      bytes(Type::Gauge, "qkv_model_bytes", "Bytes of the weights of a model"),
      cache(Type::Gauge, "qkv_cache_bytes", "Bytes of keys and values, used and reserved for texts that run");
  connections.add(value_of(sources.active_connections), {{"state", "active"}})
      .add(value_of(sources.idle_connections), {{"state", "idle"}});
  refused.add(value_of(sources.refused_connections));
  for (const Model& m : models) {
    const Labels model = {{"model", m.label}};
    if (m.label == m.model.name)
      info.add(1, {{"model", m.label}, {"kind", m.model.kind}, {"int8", m.model.int8 ? "true" : "false"}});
    bytes.add(static_cast<double>(m.model.bytes), model);
    cache.add(value_of(m.sources.cache_used), {{"model", m.label}, {"state", "used"}})
        .add(value_of(m.sources.cache_reserved), {{"model", m.label}, {"state", "reserved"}});
  }
  return {connections.family(), refused.family(), info.family(), bytes.family(), cache.family()};
}

Metrics::Metrics(const std::vector<std::string>& routes, std::vector<MetricsModel> models, int64_t cache_limit_bytes)
    : state_(std::make_unique<State>(routes, std::move(models), cache_limit_bytes)) {}
Metrics::~Metrics() = default;

void Metrics::request_done(std::string_view route, std::string_view method, int status, double seconds) {
  const auto found = state_->route_numbers.find(route);
  const size_t number = found == state_->route_numbers.end() ? state_->routes.size() - 1 : found->second;
  const auto method_place = std::find(kMethods.begin(), kMethods.end() - 1, method);
  const auto status_place = std::find(kStatuses.begin(), kStatuses.end(), status);
  state_->requests(number, to_size(method_place - kMethods.begin()), to_size(status_place - kStatuses.begin()))
      .Increment();
  state_->routes[number].seconds->Observe(seconds);
}

void Metrics::malformed(int status) {
  const auto is_it = [&](const auto& reason) { return reason.first == status; };
  const auto place = std::find_if(kMalformed.begin(), kMalformed.end() - 1, is_it);
  state_->malformed[to_size(place - kMalformed.begin())]->Increment();
}

void Metrics::add_received_bytes(int64_t bytes) { state_->received.Increment(static_cast<double>(bytes)); }
void Metrics::add_sent_bytes(int64_t bytes) { state_->sent.Increment(static_cast<double>(bytes)); }
void Metrics::add_busy_seconds(double seconds) { state_->busy.Increment(seconds); }

ModelMetrics& Metrics::model(size_t number) { return state_->models.at(number).metrics; }

void Metrics::replace_model(size_t number, MetricsModel model) {
  const std::lock_guard lock(state_->sources_mutex);
  MetricsModel& known = state_->models.at(number).model;
  model.name = known.name;
  known = std::move(model);
}

void Metrics::read_from(ServerSources sources) {
  const std::lock_guard lock(state_->sources_mutex);
  state_->sources = std::move(sources);
}

void Metrics::read_model_from(size_t number, ModelSources sources) {
  const std::lock_guard lock(state_->sources_mutex);
  state_->models.at(number).sources = std::move(sources);
}

std::string Metrics::text() const {
  std::vector<MetricFamily> families = state_->registry.Collect();
  const auto append = [&](std::vector<MetricFamily> more) {
    std::move(more.begin(), more.end(), std::back_inserter(families));
  };
  append(state_->scraped());
  append(process_metrics());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace qkv
