// Families of series in a registry of prometheus-cpp, and series that are read when the metrics are asked for.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

namespace qkv {

inline auto& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
inline auto& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
inline auto& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// The number of series of a histogram: one for each bound and for infinity, the sum and the count.
inline size_t series_of(const prometheus::Histogram::BucketBoundaries& bounds) { return bounds.size() + 3; }

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

}  // namespace qkv
