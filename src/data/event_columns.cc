#include "data/event_columns.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/fail.h"
#include "core/json.h"
#include "data/event_time.h"

namespace qkv {
namespace {

using Names = std::span<const std::string_view>;

// In each list the first that is there counts.
constexpr std::array<std::string_view, 22> kUsers = {
    "user",     "userid",     "uid",      "username",   "member",  "memberid", "customer", "customerid",
    "reviewer", "reviewerid", "visitor",  "visitorid",  "client",  "clientid", "account",  "accountid",
    "player",   "playerid",   "listener", "listenerid", "session", "sessionid"};
constexpr std::array<std::string_view, 43> kItems = {
    "item",    "itemid",     "iid",      "movie",      "movieid",   "film",    "filmid",  "product",  "productid",
    "asin",    "parentasin", "track",    "trackid",    "song",      "songid",  "artist",  "artistid", "artid",
    "book",    "bookid",     "isbn",     "article",    "articleid", "video",   "videoid", "game",     "gameid",
    "app",     "appid",      "business", "businessid", "venue",     "venueid", "recipe",  "recipeid", "sku",
    "content", "contentid",  "location", "locationid", "place",     "placeid", "poi"};
constexpr std::array<std::string_view, 16> kTimes = {
    "timestamp", "time",      "ts",          "unixtime",        "unixreviewtime", "eventtime", "datetime", "date",
    "eventdate", "createdat", "timecreated", "ratingtimestamp", "reviewtime",     "when",      "timems",   "t"};

std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, name.find(':')))
    if (c != '_' && c != '-' && c != ' ') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

template <class Name>
int index_of(const std::vector<Name>& names, std::string_view name) {
  const auto place = std::find(names.begin(), names.end(), name);
  return place == names.end() ? -1 : static_cast<int>(place - names.begin());
}

int first_of(const std::vector<std::string>& header, Names usual) {
  for (const std::string_view name : usual)
    if (const int place = index_of(header, name); place >= 0) return place;
  return -1;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

int column_of(const std::string& entry, Names first, const Place& where) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || number < 1 || number > first.size())
    fail("{}: found {} columns, wanted column {} of them", where.text(), first.size(), entry);
  return static_cast<int>(number) - 1;
}

// Whether a line whose columns are known only by number is a header: its time is a word without a digit.
bool names_a_time(Names first, int time) {
  if (time < 0) return false;
  const std::string_view field = first[static_cast<size_t>(time)];
  return !field.empty() && field.find_first_of("0123456789") == field.npos && !parse_event_time(field);
}

EventColumns columns_by_number(Names first, const std::vector<std::string>& columns, const Place& where) {
  EventColumns found;
  if (!columns.empty()) {
    found.user = column_of(columns[0], first, where);
    found.item = column_of(columns[1], first, where);
    if (columns.size() == 3) found.time = column_of(columns[2], first, where);
  } else if (first.size() >= 2 && first.size() <= 4) {
    found.user = 0, found.item = 1;
    if (first.size() > 2) found.time = static_cast<int>(first.size()) - 1;  // a rating may stand before it
  } else {
    fail("{}: found {} columns without usual names of a user and an item, wanted to be told which (--columns)",
         where.text(), first.size());
  }
  found.header = names_a_time(first, found.time);
  return found;
}

}  // namespace

EventColumns columns_by_name(Names header, const std::vector<std::string>& columns, const Place& where) {
  EventColumns found{-1, -1, -1, true};
  if (columns.empty()) {
    std::vector<std::string> names;
    for (const std::string_view name : header) names.push_back(plain(name));
    return {first_of(names, kUsers), first_of(names, kItems), first_of(names, kTimes), true};
  }
  int* const places[] = {&found.user, &found.item, &found.time};
  for (size_t i = 0; i < columns.size(); i++) {
    const auto place = std::find(header.begin(), header.end(), columns[i]);
    if (place == header.end()) {
      std::vector<std::string> names;
      for (const std::string_view name : header.first(std::min<size_t>(header.size(), 10)))
        names.push_back(excerpt(name));
      fail("{}: found the names {}{}, wanted {}", where.text(), fmt::join(names, ", "),
           header.size() > 10 ? ", ..." : "", excerpt(columns[i]));
    }
    *places[i] = static_cast<int>(place - header.begin());
  }
  return found;
}

EventColumns find_columns(Names first, const std::vector<std::string>& columns, const Place& where) {
  if (!std::ranges::all_of(columns, is_number)) return columns_by_name(first, columns, where);
  const EventColumns usual = columns_by_name(first, {}, where);
  if (columns.empty() && usual.found()) return usual;
  EventColumns found = columns_by_number(first, columns, where);
  found.header |= usual.found();
  return found;
}

void check_columns(const std::vector<std::string>& columns) {
  if (columns.size() == 1 || columns.size() > 3)
    fail("columns: found {}, wanted those of the user, the item and, where there is one, the time", columns.size());
}

}  // namespace qkv
