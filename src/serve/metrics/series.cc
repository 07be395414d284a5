#include "serve/metrics/series.h"

#include <algorithm>

namespace qkv {

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

}  // namespace qkv
