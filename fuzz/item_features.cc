// A table of what is known of items: features rise, and each is one that went before or is of two items.
#include "data/log/item_features.h"

#include <algorithm>

#include "core/to_size.h"
#include "fuzz/reader.h"

void qkv::fuzz::fuzz_item_features(std::string_view bytes) {
  static const std::vector<std::string> items = {"1", "2", "3", "Heat, 1995"}, known = {"genres: Drama", "2: a"};
  const MemoryFile file(bytes);
  for (const std::vector<std::string>& columns :
       {std::vector<std::string>{}, {"1", "2:words", "3"}, {"title", "genres"}}) {
    attempt([&] {
      std::string report;
      const ItemFeatures features = read_item_features(file.path(), columns, items, known, report);
      require(features.items() == std::ssize(items), "every item has its place");
      require(report.find('\n') == report.npos, "the report is one line");
      std::vector<int> counts(features.names.size());
      for (int64_t item = 0; item < features.items(); item++) {
        int32_t last = -1;
        for (const int32_t id : features.of(item)) {
          require(id > last, "the features of an item rise");
          counts.at(to_size(last = id))++;
        }
      }
      for (size_t id = 0; id < counts.size(); id++)
        require(id < known.size() ? features.names[id] == known[id] : counts[id] >= 2,
                "a feature went before or is of two items");
    });
    if (!columns.empty())
      attempt([&] {
        const NewItems added = read_new_items(file.path(), columns, items, known);
        require(added.features.items() == std::ssize(added.names), "every new item has its place");
        for (const std::string& name : added.names)
          require(std::ranges::find(items, name) == items.end(), "a new item is not in the log");
      });
  }
}
