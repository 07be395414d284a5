#include "data/log/event_columns.h"

#include <algorithm>
#include <charconv>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/log/event_time.h"

namespace qkv {
namespace {

using Names = std::span<const std::string_view>;

// In each list, earlier names take precedence.
constexpr std::string_view kUsers[] = {"user",     "userid",     "uid",      "username",   "member",  "memberid",
                                       "customer", "customerid", "reviewer", "reviewerid", "visitor", "visitorid",
                                       "client",   "clientid",   "account",  "accountid",  "player",  "playerid",
                                       "listener", "listenerid", "buyer",    "buyerid",    "person",  "personid",
                                       "profile",  "profileid",  "session",  "sessionid"};
constexpr std::string_view kItems[] = {
    "item",      "itemid",     "iid",      "movie",     "movieid",  "film",        "filmid",     "product",
    "productid", "parentasin", "asin",     "track",     "trackid",  "song",        "songid",     "artist",
    "artistid",  "artid",      "book",     "bookid",    "isbn",     "article",     "articleid",  "video",
    "videoid",   "game",       "gameid",   "app",       "appid",    "business",    "businessid", "venue",
    "venueid",   "recipe",     "recipeid", "sku",       "content",  "contentid",   "location",   "locationid",
    "place",     "placeid",    "poi",      "stockcode", "itemcode", "productcode", "aid",        "gmapid",
    "anime",     "animeid",    "show",     "showid",    "course",   "courseid",    "news",       "newsid",
    "hotel",     "hotelid",    "beer",     "beerid",    "post",     "postid",      "listing",    "listingid"};
constexpr std::string_view kTimes[] = {
    "timestamp",      "time",        "ts",          "unixtime",    "unixreviewtime", "eventtime",
    "datetime",       "date",        "eventdate",   "createdat",   "timecreated",    "ratingtimestamp",
    "reviewtime",     "when",        "timems",      "t",           "unixtimestamp",  "orderdate",
    "clicktimestamp", "utctime",     "timestampms", "tdat",        "reviewdate",     "transactiondate",
    "invoicedate",    "datecreated", "ratingdate",  "playedat",    "addedat",        "timestampcreated",
    "dateadded",      "created",     "createdtime", "checkintime", "utctimestamp",   "purchasedate",
    "eventtimestamp", "createtime"};

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

int column_at(const std::string& entry, Names first, const Place& where) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || number < 1 || number > first.size())
    fail("{}: no column {} among the {} columns", where.text(), entry, first.size());
  return static_cast<int>(number) - 1;
}

// Returns the first names, for an error message.
std::string some_of(Names names) {
  constexpr size_t kShown = 10;
  std::string text;
  for (const std::string_view name : names.first(std::min(names.size(), kShown)))
    text += (text.empty() ? "" : ", ") + excerpt(name);
  return text + (names.size() > kShown ? ", ..." : "");
}

// Returns whether a line whose columns are known only by number is a header: its time field is a word without digits.
bool names_a_time(Names first, int time) {
  if (time < 0) return false;
  const std::string_view field = first[to_size(time)];
  return !field.empty() && field.find_first_of("0123456789") == field.npos && !parse_event_time(field);
}

// Returns whether the line can be in the usual order, user item, user item time, or user item rating time: there is no
// date in another column, and no header that names something else.
bool in_usual_order(Names first, const EventColumns& usual) {
  if (first.size() < 2 || first.size() > 4 || usual.user > 0 || (usual.item >= 0 && usual.item != 1)) return false;
  const int last = static_cast<int>(first.size()) - 1;
  if (last > 1 && names_a_time(first, last)) return usual.time == last;
  return std::none_of(first.begin(), first.end() - 1, [](std::string_view field) {
    const auto time = parse_event_time(field);
    return time && time->date;
  });
}

EventColumns columns_by_number(Names first, const std::vector<std::string>& columns, const EventColumns& usual,
                               const Place& where) {
  EventColumns found;
  if (!columns.empty()) {
    found.user = column_at(columns[0], first, where);
    found.item = column_at(columns[1], first, where);
    if (columns.size() == 3) found.time = column_at(columns[2], first, where);
  } else if (in_usual_order(first, usual)) {
    found.user = 0, found.item = 1;
    if (first.size() > 2) found.time = static_cast<int>(first.size()) - 1;  // possibly after a rating
    found.guessed = true;
  } else {
    fail_unknown(first, where);
  }
  found.header = usual.found() || names_a_time(first, found.time);
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
    if (place == header.end()) fail("{}: no column {} (found {})", where.text(), excerpt(columns[i]), some_of(header));
    *places[i] = static_cast<int>(place - header.begin());
  }
  return found;
}

EventColumns find_columns(Names first, const std::vector<std::string>& columns, const Place& where) {
  if (!std::ranges::all_of(columns, is_number)) return columns_by_name(first, columns, where);
  const EventColumns usual = columns_by_name(first, {}, where);
  if (columns.empty() && usual.found()) return usual;
  return columns_by_number(first, columns, usual, where);
}

void fail_unknown(Names first, const Place& where) {
  fail(
      "{}: cannot determine which of the {} columns ({}) are the user and the item; "
      "set columns to USER,ITEM,TIME (names, or numbers such as 1,2,4)",
      where.text(), first.size(), some_of(first));
}

void check_columns(const std::vector<std::string>& columns) {
  if (columns.size() == 1 || columns.size() > 3)
    fail("columns: expected two or three: user, item and optionally time (found {})", columns.size());
}

EventColumns find_event_columns(const std::vector<std::string>& names, const std::vector<std::string>& columns,
                                const std::string& table) {
  check_columns(columns);
  const std::vector<std::string_view> header(names.begin(), names.end());
  return find_columns(header, columns, Place{table, 0});
}

}  // namespace qkv
