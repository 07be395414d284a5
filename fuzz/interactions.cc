// A log of interactions: what is accepted has events of users and items that have names, in the order of time.
#include "data/log/interactions.h"

#include <algorithm>
#include <set>

#include "core/to_size.h"
#include "data/log/split.h"
#include "eval/baselines.h"
#include "fuzz/reader.h"
#include "text/unicode.h"

namespace {

using qkv::fuzz::require;

void check_names(const std::vector<std::string>& names) {
  require(std::set<std::string>(names.begin(), names.end()).size() == names.size(), "no name stands twice");
  for (const std::string& name : names) {
    require(!name.empty(), "no name is empty");
    require(qkv::find_invalid_utf8(name) == std::string::npos, "names are UTF-8");
  }
}

}  // namespace

void qkv::fuzz::fuzz_interactions(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const InteractionOptions& options :
       {InteractionOptions{{}, 1, 0}, InteractionOptions{{"2", "1", "3"}, 0, 2}, InteractionOptions{{"a", "b"}, 3, 3},
        InteractionOptions{{}, 3, 0, true}, InteractionOptions{{}, 1, 0, false, "|", "%d.%m.%Y %H:%M%z", true},
        InteractionOptions{{}, 1, 0, false, "", "", true}})
    attempt([&] {
      ReadReport report;
      const Interactions data = read_interactions({file.path()}, options, report);
      check_names(data.users);
      check_names(data.items);
      require(report.events_read ==
                  report.events + report.incomplete + report.duplicates + report.short_events + report.core_events,
              "every event is kept or counted");
      require(data.offsets.size() == data.users.size() + 1 && data.offsets.back() == std::ssize(data.events),
              "offsets are those of the users");
      std::vector<int64_t> counts(data.items.size());
      for (int64_t user = 0; user < data.user_count(); user++) {
        require(std::ssize(data.of(user)) >= std::max(report.min_events, options.core), "users have enough events");
        require(std::ranges::is_sorted(data.times_of(user)), "events are in the order of time");
        for (const int32_t item : data.of(user)) counts.at(to_size(item))++;
      }
      for (const int64_t count : counts)
        require(count >= std::max<int64_t>(1, options.core), "items have enough events");
      report.lines();
      if (!data.times.empty()) Markov(data, Split::at_share(data, 0.2), HeldOut::test);
    });
}
