// Reading of interaction logs: formats, columns, times, duplicates, ties, and filtering.
#include "data/log/interactions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::expect_contains;
using testing::TempFile;
using Names = std::vector<std::string>;

// Returns every event as "user item", in the order of user ids.
Names events_of(const Interactions& data) {
  Names events;
  for (int64_t user = 0; user < data.user_count(); user++)
    for (const int32_t item : data.of(user))
      events.push_back(data.users[to_size(user)] + " " + data.items[to_size(item)]);
  return events;
}

struct Log {
  ReadReport report;
  Interactions data;

  explicit Log(const std::string& text, const InteractionOptions& options = {.min_events = 1}) {
    const TempFile file("log", text);
    data = read_interactions({file.path()}, options, report);
  }
};

const Names kThree = {"ann x", "ann y", "bob x"};

TEST(Interactions, EveryFormatGivesTheSameEvents) {
  for (const std::string& text :
       Names{"userId,movieId,rating,timestamp\nann,x,5,10\nbob,x,4.5,30\nann,y,3,20\n",
             "\xEF\xBB\xBF\"userId\",\"movieId\",\"rating\",\"timestamp\"\r\n\"ann\",x,5,10\r\nbob,\"x\",4,30\r\nann,y,"
             "3,20",
             "ann::x::5::10\nbob::x::4::30\nann::y::3::20\n", "ann x\nann y\nbob x\n", "ann  x\n\n ann y \nbob x",
             "ann\tx\nann\ty\nbob\tx\n", "ann\tx\t4\t10\nbob\tx\t1\t30\nann\ty\t3\t20\n", "ann,x\nann,y\nbob,x\n",
             "ann,y,20\nann,x,10\nbob,x,30\n", "User-ID;ISBN;Book-Rating\nann;x;0\nann;y;1\nbob;x;2\n",
             "timestamp,visitorid,event,itemid\n10,ann,view,x\n30,bob,view,x\n20,ann,buy,y\n",
             "user_id:token\titem_id:token\trating:float\ttimestamp:float\nann\tx\t5\t10."
             "0\nbob\tx\t4\t30\nann\ty\t3\t20.5\n",
             "{\"user\": \"ann\", \"item\": \"x\", \"ts\": 10}\n{\"ts\": 2e1, \"item\": \"y\", \"user\": \"ann\", "
             "\"more\": []}\n"
             "{\"user\": \"bob\", \"item\": \"x\", \"ts\": \"30\"}\n",
             "{\"reviewerID\": \"ann\", \"asin\": \"x\"}\n{\"reviewerID\": \"ann\", \"asin\": \"y\"}\n"
             "{\"reviewerID\": \"bob\", \"asin\": \"x\"}"}) {
    EXPECT_EQ(events_of(Log(text).data), kThree) << text;
  }
}

TEST(Interactions, ColumnsAreGivenByNameOrNumber) {
  const auto read = [](const std::string& text, const Names& columns) {
    return events_of(Log(text, {.columns = columns, .min_events = 1}).data);
  };
  const std::string table = "when,who,what\n20,ann,y\n10,ann,x\n30,bob,x\n";
  EXPECT_EQ(read(table, {"who", "what", "when"}), kThree);
  EXPECT_EQ(read(table, {"2", "3", "1"}), kThree);  // "when" is a word in the time column, so the line is a header
  EXPECT_EQ(read("ann,1,x\nann,2,y\nbob,1,x\n", {"1", "3"}), kThree);
  EXPECT_EQ(read("{\"a\": \"ann\", \"b\": \"x\"}\n{\"a\": \"ann\", \"b\": \"y\"}\n{\"a\": \"bob\", \"b\": \"x\"}\n",
                 {"a", "b"}),
            kThree);
  EXPECT_EQ(read("user,item,other\n1,2,3\n1,4,5\n", {"3", "2"}), (Names{"3 2", "5 4"}));  // a header with usual names
}

TEST(Interactions, WellKnownLogsNeedNoColumns) {
  for (const std::string& text :
       Names{"t_dat,customer_id,article_id,price\n2018-09-22,ann,y,.1\n2018-09-20,ann,x,.1\n2018-09-20,bob,x,.1\n",
             "userId,venueId,utcTimestamp\nann,y,Tue Apr 03 18:00:10 +0000 2012\n"
             "ann,x,Tue Apr 03 18:00:09 +0000 2012\nbob,x,Tue Apr 03 18:00:09 +0000 2012\n",
             "Invoice,StockCode,InvoiceDate,Customer ID\n1,y,2010-12-02 08:26:00,ann\n1,x,2010-12-01 08:26:00,ann\n"
             "1,x,2010-12-01 08:26:00,bob\n",
             "session,aid,ts,type\nann,y,2,0\nann,x,1,0\nbob,x,1,0\n",
             "{\"user_id\": \"ann\", \"asin\": \"x1\", \"parent_asin\": \"x\", \"timestamp\": 1}\n"
             "{\"user_id\": \"ann\", \"asin\": \"y1\", \"parent_asin\": \"y\", \"timestamp\": 2}\n"
             "{\"user_id\": \"bob\", \"asin\": \"x2\", \"parent_asin\": \"x\", \"timestamp\": 3}\n",
             "who,what,timestamp\nann,y,2\nann,x,1\nbob,x,1\n"}) {
    const Log log(text);
    Names events = events_of(log.data);
    std::ranges::sort(events);
    EXPECT_EQ(events, kThree) << text;
    EXPECT_EQ(log.data.of(0).size() == 2, log.data.users[0] == "ann") << text;
    const int64_t ann = log.data.users[0] == "ann" ? 0 : 1;
    EXPECT_EQ(log.data.items[to_size(log.data.of(ann)[0])], "x") << text;
  }
}

TEST(Interactions, AmbiguousColumnsAreAnError) {
  const auto error = [](const std::string& text) { return error_of([&] { Log{text}; }); };
  expect_contains(
      error("7,2014-04-07T10:51:09.277Z,214,0\n"),
      "log:1: cannot determine which of the 4 columns (\"7\", \"2014-04-07T10:51:09.277Z\", \"214\", \"0\") are "
      "the user and the item; set columns to USER,ITEM,TIME (names, or numbers such as 1,2,4)");
  expect_contains(error("order_id,product_id,add_to_cart_order,reordered\n1,2,3,4\n"),
                  "log:1: cannot determine which of the 4 columns");
  expect_contains(error("item_id,buyer name,date\nx,ann,3\n"), "log:1: cannot determine which of the 3 columns");
  expect_contains(error("{\"session\": 1, \"events\": []}\n"), "log:1: cannot determine which of the 2 columns");
}

TEST(Interactions, IncompleteEventsAreSkippedAndCounted) {
  const std::string csv = "user,item,time\nann,x,10\n,x,20\nann,,30\nann,y,\nann,y,20\nbob,x,10\n";
  const std::string json =
      "{\"user\": \"ann\", \"item\": \"x\", \"time\": 10}\n{\"user\": null, \"item\": \"x\", \"time\": 20}\n"
      "{\"user\": \"ann\", \"time\": 30}\n{\"user\": \"ann\", \"item\": \"y\", \"time\": \"\"}\n"
      "{\"user\": \"ann\", \"item\": \"y\", \"time\": 20.0}\n{\"user\": \"bob\", \"item\": \"x\", \"time\": 1e1}\n";
  for (const std::string& text : {csv, json}) {
    const Log log(text);
    EXPECT_EQ(events_of(log.data), kThree);
    EXPECT_EQ(log.report.incomplete, 3);
    EXPECT_EQ(log.report.events_read, 6);
    expect_contains(fmt::format("{}", fmt::join(log.report.lines(), "\n")),
                    "3 events skipped: user, item or time is missing");
  }
  expect_contains(error_of([] { Log("user,item\n,x\n,y\n"); }),
                  "no events remain of 2 (2 without user, item or time): min_events is 1");
}

TEST(Interactions, AUserWithMostOfTheEventsIsReported) {
  const auto lines = [](const std::string& text) {
    return fmt::format("{}", fmt::join(Log(text).report.lines(), "\n"));
  };
  expect_contains(lines("NA 1\nNA 2\nb 3\n"), "2 of the events belong to one user, \"NA\"");
  EXPECT_EQ(lines("a 1\na 2\nb 3\nb 4\n").find("one user"), std::string::npos);
}

TEST(Interactions, QuotedFieldsMayContainSeparators) {
  const Log log("user,item\nann,\"Fargo, \"\"the\"\" film\r\n(1996)\"\nann,\"\"\"\"\nann,\" \"\n");
  EXPECT_EQ(log.data.items, (Names{"Fargo, \"the\" film\n(1996)", "\"", " "}));
  EXPECT_EQ(log.report.lines_read, 5);
}

TEST(Interactions, UsersAndItemsAreNumberedInOrderOfAppearance) {
  const Log log("b 2\na 2\nb 10\na 01\na 1\n");
  EXPECT_EQ(log.data.users, (Names{"b", "a"}));
  EXPECT_EQ(log.data.items, (Names{"2", "10", "01", "1"}));
  EXPECT_EQ(log.data.offsets, (std::vector<int64_t>{0, 2, 5}));
  EXPECT_TRUE(log.data.times.empty());
  EXPECT_FALSE(log.report.has_times);
}

TEST(Interactions, EventsOfTheSameTimeKeepTheOrderOfTheLog) {
  const Log log("u,e,7\nu,d,7\nu,c,3\nu,b,7\nv,d,7\nu,a,3\n");
  EXPECT_EQ(events_of(log.data), (Names{"u c", "u a", "u e", "u d", "u b", "v d"}));
  EXPECT_EQ(log.data.times, (std::vector<int64_t>{3, 3, 7, 7, 7, 7}));
  EXPECT_EQ(log.report.ties, 3);
  expect_contains(fmt::format("{}", fmt::join(log.report.lines(), "\n")),
                  "3 events have the same time as the user's previous event");
}

TEST(Interactions, DuplicatesAreSkippedOnlyIfTheLogHasTimes) {
  const Log timed("u,a,1\nu,b,1\nu,a,1\nu,a,2\nu,a,1\nv,a,1\n");
  EXPECT_EQ(events_of(timed.data), (Names{"u a", "u b", "u a", "v a"}));
  EXPECT_EQ(timed.report.duplicates, 2);
  EXPECT_EQ(timed.report.events_read, 6);
  EXPECT_EQ(timed.report.events, 4);
  const Log untimed("u a\nu b\nu a\n");
  EXPECT_EQ(events_of(untimed.data), (Names{"u a", "u b", "u a"}));
  EXPECT_EQ(untimed.report.duplicates, 0);
}

TEST(Interactions, UsersWithFewEventsAreDroppedWithTheirItems) {
  const Log log("a 1\nb 9\nb 1\nc 1\na 2\na 3\nc 2\nc 2\n", {});
  EXPECT_EQ(events_of(log.data), (Names{"a 1", "a 2", "a 3", "c 1", "c 2", "c 2"}));
  EXPECT_EQ(log.report.short_users, 1);
  EXPECT_EQ(log.report.short_events, 2);
  EXPECT_EQ(log.report.lost_items, 1);
  EXPECT_EQ(log.report.users, 2);
}

// The core of random logs equals the result of repeated filtering.
TEST(Interactions, TheCoreEqualsRepeatedFiltering) {
  Random random(5, Stream::test);
  for (int round = 0; round < 30; round++) {
    const int64_t core = 2 + static_cast<int64_t>(random.below(3)), least = static_cast<int64_t>(random.below(5));
    std::vector<std::pair<int, int>> events;
    for (int i = 0; i < 120; i++)
      events.emplace_back(static_cast<int>(random.below(25)), static_cast<int>(random.below(30)));
    std::string text;
    for (const auto& [user, item] : events) text += fmt::format("u{} i{}\n", user, item);
    for (size_t before = 0; before != events.size();) {
      before = events.size();
      std::erase_if(events, [all = events, &core, &least](const auto& event) {
        const auto users = std::ranges::count(all, event.first, &std::pair<int, int>::first);
        return users < std::max(core, least) ||
               std::ranges::count(all, event.second, &std::pair<int, int>::second) < core;
      });
    }
    std::vector<std::string> wanted;
    for (const auto& [user, item] : events) wanted.push_back(fmt::format("u{} i{}", user, item));
    std::ranges::sort(wanted);
    const InteractionOptions options{.min_events = least, .core = core};
    if (events.empty()) {
      expect_contains(error_of([&] { Log(text, options); }), "no events remain of 120");
      continue;
    }
    const Log log(text, options);
    Names found = events_of(log.data);
    std::ranges::sort(found);
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(log.report.short_events + log.report.core_events + log.report.events, 120);
    EXPECT_EQ(to_size(log.report.items), log.data.items.size());
  }
}

TEST(Interactions, SeveralFilesAreOneLog) {
  const TempFile first("a", "user,item,time\nu,x,5\n"), second("b", "v::x::4::9\nu::y::4::2\n"), none("c", "u x\n");
  ReadReport report;
  const Interactions data = read_interactions({first.path(), second.path()}, {.min_events = 1}, report);
  EXPECT_EQ(events_of(data), (Names{"u y", "u x", "v x"}));
  EXPECT_EQ(report.files.size(), 2u);
  // printf 'user,item,time\nu,x,5\nv::x::4::9\nu::y::4::2\n' | sha256sum
  EXPECT_EQ(report.sha256, "9a34addcad52172b015e7485f0e390be23e4e26efd36bab39dab1ac82273d38e");
  expect_contains(error_of([&] {
                    read_interactions({first.path(), none.path()}, {.min_events = 1}, report);
                  }),
                  "c:1: expected a time column as in the first file (found none)");
}

TEST(Interactions, ColumnsOfATableAreFoundAsInAHeader) {
  const auto found = [](const Names& names, const Names& columns = {}) {
    const EventColumns c = find_event_columns(names, columns, "table");
    return std::array{c.user, c.item, c.time};
  };
  EXPECT_EQ(found({"rating", "Movie ID", "userId"}), (std::array{2, 1, -1}));
  EXPECT_EQ(found({"a", "b", "when"}, {"b", "a"}), (std::array{1, 0, -1}));
  EXPECT_EQ(found({"x", "y", "z", "t"}, {"2", "1", "4"}), (std::array{1, 0, 3}));
  EXPECT_EQ(found({"0", "1"}), (std::array{0, 1, -1}));
  EXPECT_EQ(error_of([&] {
              found({"user", "item"}, {"user", "film"});
            }),
            "table: no column \"film\" (found \"user\", \"item\")");
  EXPECT_EQ(error_of([&] {
              found({"user", "item"}, {"user"});
            }),
            "columns: expected two or three: user, item and optionally time (found 1)");
  EXPECT_TRUE(error_of([&] { found({"a", "b", "c"}); }).starts_with("table: cannot determine which of the 3 columns"));
}

TEST(Interactions, ErrorsNameTheFileAndTheLine) {
  const auto error = [](const std::string& text, const Names& columns = {}) {
    return error_of([&] { Log(text, {.columns = columns, .min_events = 1}); });
  };
  expect_contains(error("user,item\na,b\n\na,b,c\n"), "log:4: expected 2 columns as in the first line (found 3)");
  expect_contains(error("user,item,time\na,b,1\na,b,soon\n"), "log:3: time \"soon\" must be a number or a date");
  expect_contains(error("user,item,time\na,b,1\na,b,2024-01-01\n"), "log:3: time \"2024-01-01\" must be a number");
  expect_contains(error("user,item\na,b\xFF\n"), "log:2: byte 4 of the line is not valid UTF-8");
  expect_contains(error("user,item\na,b\"c\n"), "log:2: quote inside unquoted field 2 (\"b\\\"c\")");
  expect_contains(error("user,item\na,\"b\"c\n"), "log:2: text after the closing quote of field 2");
  expect_contains(error("user,item\na,\"b\nc,d\n"), "log:2: a quote is not closed");
  expect_contains(error("user,item\na,\"b\n" + std::string(200, '\n')),
                  "log:2: a quote is not closed within 100 lines");
  expect_contains(error("1\n2\n"), "log:1: expected a user and an item separated by a comma, a tab");
  expect_contains(error("1,2,3,4,5\n"), "log:1: cannot determine which of the 5 columns");
  expect_contains(error("1,2,3\n", {"1", "4"}), "log:1: no column 4 among the 3 columns");
  expect_contains(error("a,b\n1,2\n", {"a", "c"}), "log:1: no column \"c\" (found \"a\", \"b\")");
  expect_contains(error("a b\n", {"a"}), "columns: expected two or three: user, item and optionally time (found 1)");
  expect_contains(error("[{\"user\": 1}]\n"), "log:1: expected one JSON object per line (found an array");
  expect_contains(error("{\"user\": 1, \"item\": [2]}\n"), "log:1: \"item\" is neither a string nor a number");
  expect_contains(error("{'user': 1, 'item': 2}\n"),
                  "log:1: expected JSON, with names in double quotes (found a Python dictionary)");
  expect_contains(error("{\"user\": 1, \"item\": 2}\n{\n"), "log:2: not valid JSON");
  expect_contains(error("{\"user\": 1, \"item\": 2}\n5\n"), "log:2: not a JSON object");
  expect_contains(error("{\"user\": 1}\n"), "log:1: cannot determine which of the 1 columns");
  expect_contains(error(""), "log: contains no events");
  expect_contains(error("user,item\n"), "log: contains no events");
  expect_contains(error("u i 99999999999999\nu j 1.5\nu k 999999999999999\n"),
                  "log:2: with time \"1.5\" the times exceed 64 bits");
}

TEST(Interactions, UsersWithTwoEventsAreKeptIfMostHaveNoThirdOne) {
  const std::string two = "a 1\na 2\nb 1\nb 2\nc 3\n", three = "d 1\nd 2\nd 3\n";
  const Log most(two + three, {.keep_two_events = true});
  EXPECT_EQ(most.report.min_events, 2);
  EXPECT_EQ(most.report.users, 3);
  const Log half(two + three + "e 1\ne 2\ne 3\n", {.keep_two_events = true});
  EXPECT_EQ(half.report.min_events, 3);
  EXPECT_EQ(half.report.users, 2);
}

TEST(Interactions, SeparatorsAreGivenOrFound) {
  const auto read = [](const std::string& text, const std::string& separator, const Names& columns = {}) {
    return events_of(Log(text, {.columns = columns, .min_events = 1, .separator = separator}).data);
  };
  EXPECT_EQ(read("ann|x|4|10\nann|\"y\"|5|20\nbob|x|3|30\n", "|"), kThree);
  EXPECT_EQ(read("ann|x|2024-05-01 10:00\nann|y|2024-05-01 11:00\nbob|x|2024-05-01 10:00\n", "|"), kThree);
  EXPECT_EQ(read("ann\tx\nann\ty\nbob\tx\n", "\\t"), kThree);
  EXPECT_EQ(read("ann, x;ann, y;bob", ";", {"3", "1"}), (Names{"bob ann, x"}));
  EXPECT_EQ(read("{ann x\n{ann y\nbob x\n", " "), (Names{"{ann x", "{ann y", "bob x"}));
  EXPECT_EQ(read("ann || x\nann || y\nbob || x\n", " || "), kThree);
  EXPECT_EQ(read("ann;x;4,5;10\nann;y;3,0;20\nbob;x;1,5;30\n", ""), kThree);  // decimal commas
  EXPECT_EQ(read("ann,x;z,10\nann,y,20\nbob,x,30\n", ""), (Names{"ann x;z", "ann y", "bob x"}));
  EXPECT_EQ(read("ann,\"x;;;\",10\nann,y,20\nbob,x,30\n", ""), (Names{"ann x;;;", "ann y", "bob x"}));
  const auto error = [&](const std::string& text, const std::string& separator) {
    return error_of([&] { read(text, separator); });
  };
  expect_contains(error("ann;x, the one;4;10\n", ""),
                  "log:1: 3 semicolons and 1 commas may separate the columns; set "
                  "separator to one of them (found \"ann;x, the one;4;10\")");
  expect_contains(error("ann|x|2024-05-01 10:00\n", ""), "log:1: a blank or \"|\" may separate the columns");
  expect_contains(error("ann|x\n", ""), "set separator to another (found \"ann|x\")");
  for (const char* separator : {"\"", "\n", "123456789"})
    expect_contains(error("ann,x\n", separator), "separator must have 1 to 8 characters");
  expect_contains(error("ann,x\nann,y\n", "|"), "cannot determine which of the 1 columns");
}

TEST(Interactions, TimesAreReadByAFormat) {
  const std::string german = "user;item;time\nann;y;02.01.2024 10:00\nann;x;01.02.2023 10:00\nbob;x;01.01.2024 9:00\n";
  const Log log(german, {.min_events = 1, .time_format = "%d.%m.%Y %H:%M"});
  EXPECT_EQ(events_of(log.data), kThree);
  EXPECT_EQ(log.data.times, (std::vector<int64_t>{1675245600, 1704189600, 1704099600}));
  const auto error = [](const std::string& text, const std::string& format) {
    return error_of([&] { Log(text, {.min_events = 1, .time_format = format}); });
  };
  expect_contains(error(german, ""),
                  "log:2: time \"02.01.2024 10:00\" must be a number or a date such as "
                  "2024-05-01T10:30:00; for others set time_format, such as %d.%m.%Y");
  expect_contains(error(german, "%m/%d/%Y"), "time \"02.01.2024 10:00\" does not match time_format \"%m/%d/%Y\"");
  expect_contains(error(german, "%H"), "time_format \"%H\": must have a year");
  EXPECT_EQ(
      Log("{\"user\": \"a\", \"item\": \"x\", \"date\": \"5/1/2024\"}", {.min_events = 1, .time_format = "%m/%d/%Y"})
          .data.times,
      (std::vector<int64_t>{1714521600}));
}

TEST(Interactions, BadLinesAreSkippedAndCounted) {
  const std::string text =
      "user,item,time\nann,x,10\nann,x\nann,\"y\"z,15\nann,y,20\nann,q,soon\nbob,\"x\n\"bob,x,25\nbob,x,30\nann,w,1,2\n"
      "ann,x,99999999999999999999\nann,y,21\nann,y,22\nann,y,23\nann,y,24\n";
  const Log log(text, {.min_events = 1, .skip_bad_lines = true});
  EXPECT_EQ(events_of(log.data), (Names{"ann x", "ann y", "ann y", "ann y", "ann y", "ann y", "bob x"}));
  EXPECT_EQ(log.report.bad_lines, 7);
  expect_contains(log.report.first_bad_line, "log:3: expected 3 columns as in the first line (found 2)");
  EXPECT_EQ(log.report.events, 7);
  EXPECT_EQ(std::ranges::count(log.report.lines(), "7 bad lines skipped, the first: " + log.report.first_bad_line), 1);
  EXPECT_EQ(log.report.events_read, 7);
  expect_contains(error_of([&] { Log(text, {.min_events = 1}); }), "log:3: expected 3 columns");
  const std::string json =
      "{\"user\": \"ann\", \"item\": \"x\"}\n{\"user\": \"ann\", \n{\"user\": \"ann\", \"item\": \"y\"}\n"
      "[]\n{\"user\": \"bob\", \"item\": \"x\"}\n";
  const Log lines(json, {.min_events = 1, .skip_bad_lines = true});
  EXPECT_EQ(events_of(lines.data), kThree);
  EXPECT_EQ(lines.report.bad_lines, 2);
}

TEST(Interactions, AnOpenQuoteLosesOnlyItsLine) {
  std::string text = "user,item\n";
  for (int i = 0; i < 300; i++) text += fmt::format("ann,{}{}\n", i % 150 == 7 ? "\"" : "", i);
  const Log log(text, {.min_events = 1, .skip_bad_lines = true});
  EXPECT_EQ(log.report.bad_lines, 2);
  EXPECT_EQ(log.report.events, 298);
  expect_contains(log.report.first_bad_line, "log:9: a quote is not closed within 100 lines");
  const Log last("user,item\nann,x\nann,y\nbob,\"\nbob,x\n", {.min_events = 1, .skip_bad_lines = true});
  EXPECT_EQ(events_of(last.data), kThree);
  EXPECT_EQ(last.report.bad_lines, 1);
}

TEST(Interactions, ALogOfMostlyBadLinesIsRefused) {
  const auto error = [](const std::string& text) {
    return error_of([&] { Log(text, {.min_events = 1, .skip_bad_lines = true}); });
  };
  expect_contains(error("user,item,time\nann,x,1\nann,y,soon\nann,z,later\n"),
                  "log: 2 of 3 lines are bad; check columns, separator and time_format (the first: ");
  expect_contains(error("ann,x,soon,3\nann,x,5\nann,x,5\n"), "log: 2 of 3 lines are bad");
}

TEST(Interactions, AGuessedTimeThatMayBeARatingIsReported) {
  const auto doubt = [](const std::string& text, const Names& columns = {}) {
    const Log log(text, {.columns = columns, .min_events = 1});
    const bool reported = std::ranges::count(log.report.lines(), "warning: " + log.report.time_doubt) == 1;
    EXPECT_EQ(reported, !log.report.time_doubt.empty());
    return log.report.time_doubt;
  };
  const std::string ratings = "1,17,4.5\n1,18,3\n2,17,5\n";
  EXPECT_EQ(doubt(ratings),
            "column 3 is taken as the time because of its place, but has only 3 distinct values, from 3 to "
            "5; if these are ratings or counts, set columns to 1,2 (or to USER,ITEM,TIME)");
  EXPECT_EQ(doubt(ratings, {"1", "2", "3"}), "");  // as given
  EXPECT_EQ(doubt("user,item,time\n1,17,4\n1,18,3\n"), "");
  EXPECT_EQ(doubt("1,17,1714557600\n1,18,1714557601\n2,17,1714557602\n"), "");
  EXPECT_EQ(doubt("1,17,4,1714557600\n1,18,5,1714557601\n2,17,3,1714557602\n"), "");
  EXPECT_EQ(doubt("1,17,2024-05-01\n1,18,2024-05-01\n2,17,2024-05-01\n"), "");
  expect_contains(
      doubt("1,17,1714557600,4\n1,18,1714557601,5\n2,17,1714557602,3\n"),
      "column 4 is taken as the time because of its place, but has only 3 distinct values, from 3 to 5; the "
      "values of column 3 are like times: set columns to 1,2,3");
  expect_contains(doubt("1714557600,1,17\n1714557601,1,18\n1714557602,2,17\n"),
                  "the values of column 1 are like times: set columns to USER,ITEM,1, with the numbers of the others");
  std::string counts = "", years = "";
  for (int i = 0; i < 200; i++) {
    counts += fmt::format("u{}\ti{}\t{}\n", i % 9, i, i * 37);
    years += fmt::format("u{} i{} {}\n", i % 9, i, 5'000'000 + i % 4);
  }
  expect_contains(doubt(counts), "but has small values, from 0 to 7363; if these are ratings or counts");
  expect_contains(doubt(years), "but has only 4 distinct values, from 5000000 to 5000003");
}

TEST(Interactions, ErrorsSayHowTheColumnsWereRead) {
  const auto error = [](const std::string& text) { return error_of([&] { Log(text, {.min_events = 2}); }); };
  expect_contains(error("u0;i0,5\nu1;i0,5\n"),
                  "no events remain of 2: min_events is 2; the log was read as CSV, user "
                  "column 1, item column 2, time none");
  expect_contains(
      error("ann,x,4,5\nann,y,soon,3\nann,x,4,yes\n"),
      "time \"yes\" must be a number or a date such as 2024-05-01T10:30:00; for others set time_format, such as "
      "%m/%d/%Y; column 4 is taken as the time, set columns to USER,ITEM,TIME or USER,ITEM");
}

TEST(Interactions, ParquetIsRefusedWithWhatToDo) {
  expect_contains(
      error_of([] { Log(std::string("PAR1\x15\x04\x15\x10", 8)); }),
      "the file is Parquet, \"import pandas; pandas.read_parquet('FILE').to_csv('log.csv', index=False)\" in "
      "Python makes it text");
  EXPECT_EQ(events_of(Log("PAR1,x\nPAR1,y\n").data), (Names{"PAR1 x", "PAR1 y"}));
}

}  // namespace
}  // namespace qkv
