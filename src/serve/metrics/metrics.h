// The metrics of the server, in the text format of Prometheus, version 0.0.4. Label values are those of the server
// alone, never text of a client, so that there are at most kMostSeries series. All functions may be called from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/metrics/model_metrics.h"

namespace qkv {

constexpr size_t kMostSeries = 2000;

struct MetricsModel {
  std::string name, kind;  // "en-de", "translator"
  bool int8 = false;       // its weights have 8 bits or fewer
  int64_t bytes = 0;       // of its weights
};

// Functions that read values when the metrics are asked for, from any thread. Empty ones give 0.
struct ServerSources {
  std::function<double()> active_connections = {}, idle_connections = {};  // with and without a request
  std::function<double()> refused_connections = {};                        // since the start
};
struct ModelSources {
  std::function<double()> cache_used = {}, cache_reserved = {};  // bytes of keys and values
};

class Metrics {
 public:
  // Where models are too many for kMostSeries, the last ones share series with the label model="(other)": with 32
  // routes those of histograms from the 13th model on, all of them from the 42nd. Throws Error for more than 64 routes.
  Metrics(const std::vector<std::string>& routes, std::vector<MetricsModel> models, int64_t cache_limit_bytes);
  ~Metrics();

  // Counts a request that has been answered, and its time from the first byte of the head to the last of the answer. A
  // route, method or status that is unknown counts as "other".
  void request_done(std::string_view route, std::string_view method, int status, double seconds);
  // Counts a request that is no valid HTTP, by the status of its refusal; 525: a failed handshake of TLS.
  void malformed(int status);
  void add_received_bytes(int64_t bytes);
  void add_sent_bytes(int64_t bytes);
  void add_busy_seconds(double seconds);  // of a compute thread

  ModelMetrics& model(size_t number);  // its number among those that were given
  void replace_model(size_t number, MetricsModel model);

  // Set where values are read. Functions that were set before are not called any more when these return.
  void read_from(ServerSources sources);
  void read_model_from(size_t number, ModelSources sources);

  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
