// A curve of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkv {

struct PlotPoint {
  double x = 0, y = 0;

  bool operator==(const PlotPoint&) const = default;
};

// Collects points in the order of x. Beyond kMost points, neighbours are averaged, so that every point of the curve is
// the mean of equally many added ones; the last may have fewer.
class Series {
 public:
  static constexpr size_t kMost = 500;

  // Numbers beyond ±1e30 and those that are not finite are left out.
  void add(double x, double y);
  std::vector<PlotPoint> points() const;
  bool empty() const { return sums_.empty(); }

 private:
  struct Sum {
    double x = 0, y = 0;
    int64_t count = 0;
  };

  void halve();

  std::vector<Sum> sums_;
  int64_t width_ = 1;  // points that each sum holds
};

}  // namespace qkv
