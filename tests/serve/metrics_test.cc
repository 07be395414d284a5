// The metrics of the server: which series there are, what they count, and how many there can be.
#include "serve/metrics/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;

const std::vector<std::string> kRoutes = {"/translate", "/v1/models"};
const std::vector<MetricsModel> kModels = {{"en-de", "translator", false, 1000}, {"lm", "language model", true, 250}};

std::vector<std::string> series_in(const std::string& text) {
  std::vector<std::string> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) series.push_back(line.substr(0, line.rfind(' ')));
  return series;
}

// Returns the value of a series, with its labels in the order of their names; "" if there is none.
std::string value_in(const Metrics& metrics, const std::string& series) {
  std::istringstream lines(metrics.text());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(series + " ")) return line.substr(series.size() + 1);
  return "";
}

TEST(ServerMetrics, HaveEverySeriesFromTheStart) {
  const std::string text = Metrics(kRoutes, kModels, 1 << 20).text();
  std::istringstream labelled(
      "qkv_build_info qkv_model_info qkv_model_bytes qkv_http_requests_total qkv_http_request_duration_seconds_bucket "
      "qkv_http_connections qkv_http_malformed_total qkv_requests_waiting qkv_requests_running qkv_waiting_tokens "
      "qkv_requests_total qkv_requests_rejected_total qkv_requests_cancelled_total qkv_queue_seconds_bucket "
      "qkv_time_to_first_token_seconds_bucket qkv_time_per_token_seconds_bucket qkv_step_seconds_bucket "
      "qkv_step_rows_bucket qkv_input_tokens_total qkv_output_tokens_total qkv_cached_tokens_total "
      "qkv_texts_cut_total qkv_cache_bytes");
  for (std::string name; labelled >> name;) expect_contains(text, "\n" + name + "{");
  std::istringstream plain(
      "qkv_http_connections_refused_total qkv_http_received_bytes_total qkv_http_sent_bytes_total "
      "qkv_cache_limit_bytes qkv_compute_busy_seconds_total process_cpu_seconds_total process_resident_memory_bytes "
      "process_open_fds process_max_fds process_start_time_seconds");
  for (std::string name; plain >> name;) expect_contains(text, "\n" + name + " ");
}

TEST(ServerMetrics, DescribeEverySeriesAndGiveNoneTwice) {
  const std::string text = Metrics(kRoutes, kModels, 0).text();
  std::vector<std::string> series = series_in(text);
  std::sort(series.begin(), series.end());
  EXPECT_EQ(std::adjacent_find(series.begin(), series.end()), series.end());
  for (const std::string& one : series) {
    std::string name = one.substr(0, one.find('{'));
    for (const std::string end : {"_bucket", "_sum", "_count"})
      if (name.ends_with(end)) name.resize(name.size() - end.size());
    expect_contains("\n" + text, "\n# HELP " + name + " ");
    expect_contains("\n" + text, "\n# TYPE " + name + " ");
  }
}

TEST(ServerMetrics, CountRequestsByRouteMethodAndStatus) {
  Metrics metrics(kRoutes, kModels, 0);
  for (int i = 0; i < 3; i++) metrics.request_done("/translate", "POST", 200, 0.003);
  metrics.request_done("/translate", "POST", 429, 0.0001);
  metrics.request_done("/etc/passwd", "PROPFIND", 299, 100);
  const std::string requests = "qkv_http_requests_total";
  EXPECT_EQ(value_in(metrics, requests + R"({code="200",method="POST",route="/translate"})"), "3");
  EXPECT_EQ(value_in(metrics, requests + R"({code="429",method="POST",route="/translate"})"), "1");
  EXPECT_EQ(value_in(metrics, requests + R"({code="other",method="other",route="other"})"), "1");
  EXPECT_EQ(value_in(metrics, requests + R"({code="other",method="other",route="/translate"})"), "0");
  const std::string seconds = "qkv_http_request_duration_seconds";
  EXPECT_EQ(value_in(metrics, seconds + R"(_bucket{route="/translate",le="0.0005"})"), "1");
  EXPECT_EQ(value_in(metrics, seconds + R"(_bucket{route="/translate",le="0.005"})"), "4");
  EXPECT_EQ(value_in(metrics, seconds + R"(_bucket{route="other",le="60"})"), "0");
  EXPECT_EQ(value_in(metrics, seconds + R"(_count{route="other"})"), "1");
  EXPECT_EQ(metrics.text().find("passwd"), std::string::npos);
}

TEST(ServerMetrics, CountOutcomesTogetherWithTheirReasons) {
  Metrics metrics(kRoutes, kModels, 0);
  ModelMetrics& model = metrics.model(1);
  model.done();
  model.failed();
  model.expired();
  model.rejected(RejectReason::queue);
  model.rejected(RejectReason::draining);
  model.cancelled(CancelStage::sending);
  for (const auto& [outcome, count] :
       {std::pair("done", "1"), {"failed", "1"}, {"rejected", "2"}, {"cancelled", "1"}, {"expired", "1"}})
    EXPECT_EQ(value_in(metrics, fmt::format(R"(qkv_requests_total{{model="lm",outcome="{}"}})", outcome)), count);
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_rejected_total{model="lm",reason="draining"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_cancelled_total{model="lm",stage="sending"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_total{model="en-de",outcome="done"})"), "0");
}

TEST(ServerMetrics, FollowWhatWaitsAndRuns) {
  Metrics metrics(kRoutes, kModels, 0);
  ModelMetrics& model = metrics.model(0);
  model.add_waiting(2, 100);
  model.add_waiting(-1, -30);
  model.add_running(1);
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_waiting{model="en-de"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_waiting_tokens{model="en-de"})"), "70");
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_running{model="en-de"})"), "1");
  model.add_waiting(-1, -70);
  model.add_running(-1);
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_waiting{model="en-de"})"), "0");
  EXPECT_EQ(value_in(metrics, R"(qkv_waiting_tokens{model="en-de"})"), "0");
  EXPECT_EQ(value_in(metrics, R"(qkv_requests_running{model="en-de"})"), "0");
}

TEST(ServerMetrics, CountTokensBytesAndTimes) {
  Metrics metrics(kRoutes, kModels, 0);
  ModelMetrics& model = metrics.model(0);
  model.add_input_tokens(7);
  model.add_output_tokens(8);
  model.add_cached_tokens(3);
  model.add_texts_cut(1);
  model.observe_queue(0.25);
  model.observe_first_token(0.5);
  model.observe_token(0.01);
  model.observe_step(0.02, 5);
  metrics.add_received_bytes(100);
  metrics.add_sent_bytes(200);
  metrics.add_busy_seconds(1.5);
  metrics.malformed(431);
  metrics.malformed(499);
  EXPECT_EQ(value_in(metrics, R"(qkv_input_tokens_total{model="en-de"})"), "7");
  EXPECT_EQ(value_in(metrics, R"(qkv_output_tokens_total{model="en-de"})"), "8");
  EXPECT_EQ(value_in(metrics, R"(qkv_cached_tokens_total{model="en-de"})"), "3");
  EXPECT_EQ(value_in(metrics, R"(qkv_texts_cut_total{model="en-de"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_queue_seconds_sum{model="en-de"})"), "0.25");
  EXPECT_EQ(value_in(metrics, R"(qkv_time_to_first_token_seconds_sum{model="en-de"})"), "0.5");
  EXPECT_EQ(value_in(metrics, R"(qkv_time_per_token_seconds_count{model="en-de"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_step_seconds_count{model="en-de"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_step_rows_bucket{model="en-de",le="4"})"), "0");
  EXPECT_EQ(value_in(metrics, R"(qkv_step_rows_bucket{model="en-de",le="8"})"), "1");
  EXPECT_EQ(value_in(metrics, "qkv_http_received_bytes_total"), "100");
  EXPECT_EQ(value_in(metrics, "qkv_http_sent_bytes_total"), "200");
  EXPECT_EQ(value_in(metrics, "qkv_compute_busy_seconds_total"), "1.5");
  EXPECT_EQ(value_in(metrics, R"(qkv_http_malformed_total{reason="header_size"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_http_malformed_total{reason="other"})"), "1");
}

TEST(ServerMetrics, ReadConnectionsAndCachesWhenTheyAreAskedFor) {
  Metrics metrics(kRoutes, kModels, 12345);
  double open = 3;
  metrics.read_from({[&] { return open; }, {}, [] { return 9.0; }});
  metrics.read_model_from(1, {[] { return 10.0; }, [] { return 20.0; }});
  EXPECT_EQ(value_in(metrics, R"(qkv_http_connections{state="active"})"), "3");
  open = 4;
  EXPECT_EQ(value_in(metrics, R"(qkv_http_connections{state="active"})"), "4");
  EXPECT_EQ(value_in(metrics, R"(qkv_http_connections{state="idle"})"), "0");
  EXPECT_EQ(value_in(metrics, "qkv_http_connections_refused_total"), "9");
  EXPECT_EQ(value_in(metrics, R"(qkv_cache_bytes{model="lm",state="used"})"), "10");
  EXPECT_EQ(value_in(metrics, R"(qkv_cache_bytes{model="lm",state="reserved"})"), "20");
  EXPECT_EQ(value_in(metrics, R"(qkv_cache_bytes{model="en-de",state="used"})"), "0");
  EXPECT_EQ(value_in(metrics, "qkv_cache_limit_bytes"), "12345");
  metrics.read_model_from(1, {});
  EXPECT_EQ(value_in(metrics, R"(qkv_cache_bytes{model="lm",state="used"})"), "0");
}

TEST(ServerMetrics, DescribeModelsAlsoAfterOneIsReplaced) {
  Metrics metrics(kRoutes, kModels, 0);
  EXPECT_EQ(value_in(metrics, R"(qkv_model_info{int8="true",kind="language model",model="lm"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_model_bytes{model="lm"})"), "250");
  metrics.replace_model(1, {"", "language model", false, 1000});
  EXPECT_EQ(value_in(metrics, R"(qkv_model_info{int8="true",kind="language model",model="lm"})"), "");
  EXPECT_EQ(value_in(metrics, R"(qkv_model_info{int8="false",kind="language model",model="lm"})"), "1");
  EXPECT_EQ(value_in(metrics, R"(qkv_model_bytes{model="lm"})"), "1000");
}

TEST(ServerMetrics, MeasureTheProcess) {
  const Metrics metrics(kRoutes, kModels, 0);
  EXPECT_GT(std::stod(value_in(metrics, "process_cpu_seconds_total")), 0);
  EXPECT_GT(std::stod(value_in(metrics, "process_resident_memory_bytes")), 1e6);
  EXPECT_GE(std::stod(value_in(metrics, "process_open_fds")), 3);
  EXPECT_GE(std::stod(value_in(metrics, "process_max_fds")), std::stod(value_in(metrics, "process_open_fds")));
  EXPECT_GT(std::stod(value_in(metrics, "process_start_time_seconds")), 1.6e9);
}

// Requests every method with every known status and one more, on every route. Returns the number of requests.
size_t request_all(Metrics& metrics, const std::vector<std::string>& routes) {
  const std::vector<std::string> methods = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"};
  const std::vector<int> statuses = {200, 204, 206, 304, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415,
                                     417, 421, 422, 424, 429, 431, 500, 501, 502, 503, 504, 505, 299};
  for (const std::string& route : routes)
    for (const std::string& method : methods)
      for (const int status : statuses) metrics.request_done(route, method, status, 1);
  return routes.size() * methods.size() * statuses.size();
}

TEST(ServerMetrics, StayBelowTheLimitOfSeriesWhateverIsServedAndAsked) {
  for (const size_t routes : {0, 1, 32, 64})
    for (const size_t models : {0, 1, 12, 13, 41, 42, 500}) {
      std::vector<std::string> names;
      for (size_t i = 0; i < routes; i++) names.push_back(fmt::format("/{}", i));
      std::vector<MetricsModel> served;
      for (size_t i = 0; i < models; i++) served.push_back({fmt::format("m{}", i), "translator"});
      Metrics metrics(names, served, 0);
      names.push_back("/unknown");
      request_all(metrics, names);
      EXPECT_LE(series_in(metrics.text()).size(), kMostSeries) << routes << " routes, " << models << " models";
    }
  EXPECT_EQ(error_of([] { Metrics(std::vector<std::string>(65, "/"), {}, 0); }), "metrics: at most 64 routes (are 65)");
}

TEST(ServerMetrics, CountRequestsBeyondTheLimitAsOther) {
  std::vector<std::string> routes;
  for (int i = 0; i < 64; i++) routes.push_back(fmt::format("/{}", i));
  Metrics metrics(routes, {}, 0);
  const size_t count = request_all(metrics, routes);
  double sum = 0;
  std::istringstream lines(metrics.text());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("qkv_http_requests_total{")) sum += std::stod(line.substr(line.rfind(' ')));
  EXPECT_EQ(sum, count);
  EXPECT_NE(value_in(metrics, R"(qkv_http_requests_total{code="other",method="other",route="/63"})"), "0");
}

TEST(ServerMetrics, LetModelsBeyondTheLimitCountTogether) {
  std::vector<MetricsModel> models(100, {"", "translator", false, 10});
  for (size_t i = 0; i < models.size(); i++) models[i].name = fmt::format("m{}", i);
  std::vector<std::string> routes;
  for (int i = 0; i < 32; i++) routes.push_back(fmt::format("/{}", i));
  Metrics metrics(routes, models, 0);
  for (size_t i = 0; i < models.size(); i++) {
    metrics.model(i).done();
    metrics.model(i).observe_queue(1);
    metrics.read_model_from(i, {[] { return 1.0; }, {}});
  }
  EXPECT_EQ(value_in(metrics, "qkv_requests_total{model=\"m40\",outcome=\"done\"}"), "1");
  EXPECT_EQ(value_in(metrics, "qkv_requests_total{model=\"(other)\",outcome=\"done\"}"), "59");
  EXPECT_EQ(value_in(metrics, "qkv_queue_seconds_count{model=\"(other)\"}"), "100");
  EXPECT_EQ(value_in(metrics, "qkv_model_bytes{model=\"(other)\"}"), "590");
  EXPECT_EQ(value_in(metrics, "qkv_cache_bytes{model=\"(other)\",state=\"used\"}"), "59");
}

TEST(ServerMetrics, CountFromSeveralThreads) {
  Metrics metrics(kRoutes, kModels, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; i++) {
        metrics.request_done("/translate", t == 0 ? "GET" : "POST", 200 + i % 2 * 4, 0.1);
        metrics.model(0).add_waiting(1, 5);
        metrics.model(0).add_waiting(-1, -5);
        if (i % 100 == 0) metrics.text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(value_in(metrics, R"(qkv_http_requests_total{code="200",method="POST",route="/translate"})"), "1000");
  EXPECT_EQ(value_in(metrics, R"(qkv_http_request_duration_seconds_count{route="/translate"})"), "3000");
  EXPECT_EQ(value_in(metrics, R"(qkv_waiting_tokens{model="en-de"})"), "0");
}

}  // namespace
}  // namespace qkv
