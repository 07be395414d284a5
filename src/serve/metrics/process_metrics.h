// The metrics that every program reports to Prometheus under the same names: processor time, memory, descriptors.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace qkv {

// Reads process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds and
// process_start_time_seconds. A value that the system does not give, for want of /proc say, is 0.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace qkv
