#include "text/mark_hint.h"

#include <fmt/format.h>

#include <utility>

namespace qkv {

std::string mark_hint(std::string_view beginning) {
  using namespace std::string_view_literals;
  for (const auto& [mark, hint] :
       {std::pair{"\x1F\x8B"sv, "the file is compressed, \"zcat FILE\" prints its text"sv},
        {"\x28\xB5\x2F\xFD"sv, "the file is compressed, \"zstdcat FILE\" prints its text"},
        {"\xFD\x37zXZ"sv, "the file is compressed, \"xzcat FILE\" prints its text"},
        {"BZh"sv, "the file is compressed, \"bzcat FILE\" prints its text"},
        {"PK\3\4"sv, "the file is a zip archive, \"unzip -p FILE\" prints its text"},
        {"7z\xBC\xAF"sv, "the file is a 7z archive, expected text"},
        {"PAR1"sv,
         "the file is Parquet, \"import pandas; pandas.read_parquet('FILE').to_csv('log.csv', "
         "index=False)\" in Python makes it text"},
        {"ARROW1"sv,
         "the file is Arrow, \"import pandas; pandas.read_feather('FILE').to_csv('log.csv', "
         "index=False)\" in Python makes it text"},
        {"\xFF\xFE"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"},
        {"\xFE\xFF"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"}})
    if (beginning.starts_with(mark)) return fmt::format(" ({})", hint);
  return "";
}

}  // namespace qkv
