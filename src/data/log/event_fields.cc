#include "data/log/event_fields.h"

#include <algorithm>
#include <charconv>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "data/log/event_time.h"

namespace qkv {
namespace {

void split_at(std::string_view line, std::string_view separator, Fields& fields) {
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    fields.values.push_back(line.substr(begin, end - begin));  // npos − begin: the rest of the line
    if (end == line.npos) return;
    begin = end + separator.size();
  }
}

void split_at_blanks(std::string_view line, Fields& fields) {
  for (size_t begin = 0; (begin = line.find_first_not_of(' ', begin)) != line.npos;) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    fields.values.push_back(line.substr(begin, end - begin));
    begin = end;
  }
}

// Reads the quoted field whose opening quote is at `begin`. Returns the position after its closing quote, or npos.
size_t take_quoted(std::string_view line, size_t begin, Fields& fields) {
  bool doubled = false;
  size_t end = begin + 1;
  while ((end = line.find('"', end)) != line.npos && end + 1 < line.size() && line[end + 1] == '"') {
    doubled = true;
    end += 2;
  }
  if (end == line.npos) return end;
  std::string_view field = line.substr(begin + 1, end - begin - 1);
  if (doubled) {
    std::string& plain = fields.unquoted.emplace_back();
    for (size_t i = 0; i < field.size(); i++) {
      plain += field[i];
      if (field[i] == '"') i++;
    }
    field = plain;
  }
  fields.values.push_back(field);
  return end + 1;
}

bool split_csv(std::string_view line, char separator, const Place& where, Fields& fields) {
  for (size_t begin = 0;; begin++) {
    if (begin < line.size() && line[begin] == '"') {
      begin = take_quoted(line, begin, fields);
      if (begin == line.npos) return false;
      if (begin < line.size() && line[begin] != separator)
        fail("{}: text after the closing quote of field {}", where.text(), fields.values.size());
    } else {
      const size_t end = std::min(line.find(separator, begin), line.size());
      const std::string_view field = line.substr(begin, end - begin);
      if (field.find('"') != field.npos)
        fail("{}: quote inside unquoted field {} ({}); quote the field and double its quotes", where.text(),
             fields.values.size() + 1, excerpt(field));
      fields.values.push_back(field);
      begin = end;
    }
    if (begin == line.size()) return true;
  }
}

// Counts a separator outside quotes.
int64_t count_outside_quotes(std::string_view line, char separator) {
  bool quoted = false;
  int64_t count = 0;
  for (const char c : line) {
    quoted ^= c == '"';
    count += !quoted && c == separator;
  }
  return count;
}

// Returns whether each comma is between digits.
bool has_decimal_commas(std::string_view line) {
  const auto is_digit = [&](size_t i) { return i < line.size() && line[i] >= '0' && line[i] <= '9'; };
  for (size_t i = 0; i < line.size(); i++)
    if (line[i] == ',' && (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))) return false;
  return true;
}

// Returns the format of a line with commas and semicolons, "1;2;4,5;10" or "1,a;b,10".
EventFormat commas_or_semicolons(std::string_view line, const Place& where) {
  const int64_t commas = count_outside_quotes(line, ','), semicolons = count_outside_quotes(line, ';');
  if (commas >= semicolons) return commas > 0 ? EventFormat::csv : EventFormat::semicolons;
  if (commas > 0 && !has_decimal_commas(line))
    fail("{}: {} semicolons and {} commas may separate the columns; set separator to one of them (found {})",
         where.text(), semicolons, commas, excerpt(line));
  return EventFormat::semicolons;
}

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

EventFormat log_format(std::string_view line, const Place& where) {
  const size_t first = line.find_first_not_of(" \t");
  if (line.substr(first).starts_with("{'") || line.substr(first).starts_with("{u'"))
    fail("{}: expected JSON, with names in double quotes (found a Python dictionary)", where.text());
  if (line.substr(first).starts_with('{')) return EventFormat::json;
  if (line.substr(first).starts_with('['))
    fail("{}: expected one JSON object per line (found an array; \"jq -c .[] FILE\" converts it)", where.text());
  for (const auto& [separator, format] : {std::pair{"\t", EventFormat::tabs},
                                          {"::", EventFormat::colons},
                                          {",", EventFormat::csv},
                                          {";", EventFormat::semicolons},
                                          {" ", EventFormat::blanks}}) {
    if (line.find(separator) == line.npos) continue;
    if (format == EventFormat::csv) return commas_or_semicolons(line, where);
    if (format == EventFormat::blanks && line.find('|') != line.npos)
      fail("{}: a blank or \"|\" may separate the columns; set separator to one of them (found {})", where.text(),
           excerpt(line));
    return format;
  }
  fail(
      "{}: expected a user and an item separated by a comma, a tab, \"::\", a semicolon or a blank; set separator to "
      "another (found {})",
      where.text(), excerpt(line));
}

EventFormat format_of(const std::string& separator) {
  constexpr size_t kLongest = 8;
  if (separator.empty() || separator.size() > kLongest || separator.find_first_of("\"\r\n") != separator.npos)
    fail("separator must have 1 to {} characters, without quotes and line ends (is {})", kLongest, excerpt(separator));
  for (const auto& [text, format] : {std::pair{"\t", EventFormat::tabs},
                                     {"\\t", EventFormat::tabs},
                                     {"::", EventFormat::colons},
                                     {",", EventFormat::csv},
                                     {";", EventFormat::semicolons},
                                     {" ", EventFormat::blanks}})
    if (separator == text) return format;
  return EventFormat::other;
}

bool split_fields(std::string_view line, EventFormat format, const Place& where, Fields& fields,
                  std::string_view separator) {
  fields.values.clear();
  fields.unquoted.clear();
  switch (format) {
    case EventFormat::csv:
      return split_csv(line, ',', where, fields);
    case EventFormat::semicolons:
      return split_csv(line, ';', where, fields);
    case EventFormat::tabs:
      split_at(line, "\t", fields);
      break;
    case EventFormat::colons:
      split_at(line, "::", fields);
      break;
    case EventFormat::blanks:
      split_at_blanks(line, fields);
      break;
    case EventFormat::other:
      if (separator.size() == 1) return split_csv(line, separator[0], where, fields);
      split_at(line, separator, fields);
      break;
    case EventFormat::json:
      break;  // not split
  }
  return true;
}

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
