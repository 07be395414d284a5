// A table of ids and titles, then its own bytes as what somebody asks for: what is found has the title, or is the id.
#include <algorithm>

#include "fuzz/reader.h"
#include "qkv/recommender.h"
#include "text/unicode.h"

void qkv::fuzz::fuzz_titles(std::string_view bytes) {
  const MemoryFile file(bytes);
  std::string_view asked = bytes.substr(0, 256);
  asked = asked.substr(0, find_invalid_utf8(asked));
  const auto is_item = [](std::string_view name) { return name.size() % 2 == 1; };  // some
  for (const std::vector<std::string>& columns : {std::vector<std::string>{}, {"2", "1"}, {"id", "name"}})
    attempt([&] {
      const Titles titles(file.path(), columns, is_item);
      require(titles.near(asked).size() <= 3, "no more titles are near than are wanted");
      require(titles.suggest(asked, 2, {"1", "12"}).size() <= 2, "no more titles are suggested than are wanted");
      for (const std::string& part : titles.split(asked)) {
        require(!part.empty() && asked.find(part) != asked.npos, "a list is cut into pieces of it");
        for (const std::string& item : titles.find(part)) {
          const std::string& title = titles.title(item);
          if (item == part || !is_item(item) || is_item(title)) continue;
          const std::vector<std::string> same = titles.find(title);
          require(std::ranges::find(same, item) != same.end(), "what is found by a text is found by its title");
        }
      }
    });
}
