// Advice on a log of users and items, and its report as JSON.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "data/log/interactions.h"
#include "program/corpus/corpus.h"

namespace qkv {

using nlohmann::ordered_json;

ReadReport check_logs(const std::vector<std::string>& files, const InteractionOptions& options) {
  ReadReport report;
  read_interactions(files, options, report);
  return report;
}

std::vector<std::string> advice_for(const ReadReport& r) {
  constexpr int64_t kManyUsers = 100;
  std::vector<std::string> advice;
  if (!r.has_times)
    advice.push_back("the log has no times: each user's events must be in the order in which they happened");
  if (!r.time_doubt.empty()) advice.push_back(r.time_doubt);
  if (r.bad_lines > 0) advice.push_back(fmt::format("{} lines cannot be read, and are dropped", r.bad_lines));
  if (r.incomplete > 0)
    advice.push_back(fmt::format("{} events lack a user, an item or a time, and are dropped", r.incomplete));
  if (r.short_users > r.users)
    advice.push_back(fmt::format("most users have fewer than {} events, and are dropped", r.min_events));
  if (r.users > kManyUsers && 10 * r.busiest_events > r.events)
    advice.push_back(fmt::format("user {} has {} of {} events; if it is a program, remove it", excerpt(r.busiest),
                                 r.busiest_events, r.events));
  if (r.has_times && 2 * r.ties > r.events)
    advice.push_back("most events have the same time as the user's previous one: times of days lose the order");
  return advice;
}

std::string to_json(const ReadReport& r) {
  const ordered_json json = {{"files", r.files},
                             {"sha256", r.sha256},
                             {"has_times", r.has_times},
                             {"lines_read", r.lines_read},
                             {"events_read", r.events_read},
                             {"bad_lines", r.bad_lines},
                             {"incomplete", r.incomplete},
                             {"duplicates", r.duplicates},
                             {"ties", r.ties},
                             {"short_users", r.short_users},
                             {"short_events", r.short_events},
                             {"users", r.users},
                             {"items", r.items},
                             {"events", r.events},
                             {"advice", advice_for(r)}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace qkv
