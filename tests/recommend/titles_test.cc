// Titles: reading tables, finding items by typed text, and splitting lists of titles that contain commas.
#include "recommend/titles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/recommender.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Names = std::vector<std::string>;

const std::string kFilms =
    "movieId,title,genres\n"
    "1,Heat (1995),Crime\n"
    "2,\"Matrix, The (1999)\",Action\n"
    "3,Heat (1986),Crime\n"
    "4,\"Cook, the Thief, His Wife & Her Lover, The (1989)\",Drama\n"
    "5,Emma (1996),Drama\n"
    "6,Emma (1996),Drama\n"
    "7,\"Say \"\"Hi\"\"\",Drama\n"
    "8,Ma,Drama\n"
    "9,Fargo (1996),Crime\n"
    "77,\"Avventura, L' (1960)\",Drama\n";

bool is_item(std::string_view name) { return name.size() == 1 && name >= "1" && name <= "9" && name != "6"; }

Titles read(const std::string& table, const Names& columns = {}) {
  return Titles(testing::TempFile("titles", table).path(), columns, is_item);
}

TEST(Titles, ReturnsTheTitlesOfTheTable) {
  const Titles titles = read(kFilms);
  EXPECT_EQ(titles.title("2"), "Matrix, The (1999)");
  EXPECT_EQ(titles.title("7"), "Say \"Hi\"");
  EXPECT_EQ(titles.title("77"), "Avventura, L' (1960)");
  EXPECT_EQ(titles.title("78"), "");
}

TEST(Titles, ReadsTheUsualFormats) {
  for (const auto& [table, columns] :
       std::initializer_list<std::pair<std::string, Names>>{{"sas_id\tml_id\ttitle\tgenres\n1\t3\tHeat\tCrime\n", {}},
                                                            {"1::Heat::Crime\n2::Fargo::Crime\n", {}},
                                                            {"\xEF\xBB\xBF"
                                                             "id;name\r\n1;\"Heat\"\r\n",
                                                             {}},
                                                            {"genre,film,id\nCrime,Heat,1\n", {"id", "film"}},
                                                            {"Crime,Heat,1\n", {"3", "2"}},
                                                            {"\nid,title\n\n1,Heat\n", {}},
                                                            {"id,title\n1,\"Heat\"\n2,\"two\nlines\"", {}}})
    EXPECT_EQ(read(table, columns).title("1"), "Heat") << table;
}

TEST(Titles, AreOneLine) { EXPECT_EQ(read("id,title\n1,\"Heat\n(1995)\"\n").title("1"), "Heat (1995)"); }

TEST(Titles, ErrorsNameTheLineOfTheTable) {
  for (const auto& [table, columns, expected] : std::initializer_list<std::tuple<std::string, Names, std::string>>{
           {"Heat\n", {}, ":1: expected at least two columns separated by a comma"},
           {"id,title\n1,Heat\n2\n", {}, ":3: expected id and title in columns 1 and 2 (found 1 columns)"},
           {"id,title\n1,\"Heat\n", {}, ":2: a quoted field is not closed"},
           {"id,title\n1,Heat\n", {"id", "name"}, ":1: no column \"name\" among the 2 columns"},
           {"id,title\n1,Heat\n", {"1", "3"}, "no column \"3\" among"},
           {"id,title\n1,Heat\n", {"1"}, "columns must name two columns, id and title (names 1)"},
           {"id,title\n1,\xff\n", {}, "titles:2: "}})
    testing::expect_contains(error_of([&] { read(table, columns); }), expected);
  std::string endless = "id,title\n1,\"";
  for (int i = 0; i < 20000; i++) endless += "word\n";
  testing::expect_contains(error_of([&] { read(endless); }), ":2: a quoted field is not closed within 65536 bytes");
}

TEST(Titles, FindsItemsByIdTitleAndSpelling) {
  const Titles titles = read(kFilms);
  for (const auto& [text, items] : std::initializer_list<std::pair<std::string, Names>>{
           {"2", {"2"}},
           {"Heat (1995)", {"1"}},
           {" HEAT  (1995) ", {"1"}},
           {"heat", {"1", "3"}},
           {"matrix, the", {"2"}},
           {"The Matrix", {"2"}},
           {"the matrix (1999)", {"2"}},
           {"L'Avventura", {"77"}},  // the title of an id that is not an item
           {"Emma (1996)", {"5"}},   // only one of the two ids is an item
           {"matrix", {}},
           {"", {}},
           {"\xff", {}},
           {"77", {}}})
    EXPECT_EQ(titles.find(text), items) << text;
}

TEST(Titles, SplitsListsIntoKnownTitles) {
  const Titles titles = read(kFilms);
  for (const auto& [list, parts] : std::initializer_list<std::pair<std::string, Names>>{
           {"Heat (1995), Fargo (1996)", {"Heat (1995)", "Fargo (1996)"}},
           {"Matrix, The (1999),Heat (1986)", {"Matrix, The (1999)", "Heat (1986)"}},
           {"1, Cook, the Thief, His Wife & Her Lover, The, 2",
            {"1", "Cook, the Thief, His Wife & Her Lover, The", "2"}},
           {"Ma, trix, The (1999), Fargo", {"Ma", "trix, The (1999)", "Fargo"}},
           {"Godfather, The (1972)", {"Godfather, The (1972)"}},
           {"Up, , Heat (1986), so, what", {"Up", "Heat (1986)", "so, what"}},
           {",", {}},
           {"", {}}})
    EXPECT_EQ(titles.split(list), parts) << list;
  EXPECT_EQ(Titles(is_item).split("1,2 , 3"), (Names{"1", "2", "3"}));
}

TEST(Titles, NearReturnsTitlesOfItemsInOrderOfDistance) {
  const Titles titles = read(kFilms);
  EXPECT_EQ(titles.near("Fergo"), Names{"Fargo (1996)"});
  EXPECT_EQ(titles.near("teh matrix (1999)"), Names{"Matrix, The (1999)"});
  EXPECT_EQ(titles.near("Heat (1996)"), (Names{"Heat (1995)", "Heat (1986)"}));
  EXPECT_EQ(titles.near("Heat (1996)", 1), Names{"Heat (1995)"});
  EXPECT_EQ(titles.near("L'Aventura"), Names{});
  EXPECT_EQ(titles.near("nothing of the kind"), Names{});
}

TEST(Titles, SimilarTitlesContainTheWords) {
  const Titles titles = read(
      "id,title\n1,Star Maps (1997)\n2,\"Force Awakens, The: Star Wars VII\"\n3,Star Wars (1977)\n"
      "4,Wars of a Star (2001)\n5,Starship Troopers\n");
  for (const char* text : {"Star Wars", "star war"})
    EXPECT_EQ(titles.similar(text, 5),
              (Names{"Star Wars (1977)", "Force Awakens, The: Star Wars VII", "Wars of a Star (2001)"}));
  EXPECT_EQ(titles.similar("awakens star", 5), (Names{"Force Awakens, The: Star Wars VII"}));
  EXPECT_EQ(titles.similar("Stra Maps", 5), (Names{"Star Maps (1997)"}));
  EXPECT_EQ(titles.similar("", 5), Names{});
  EXPECT_EQ(Titles(is_item).similar("Star", 5), Names{});
}

TEST(Titles, IdsThatMatchNoItemAreReported) {
  const auto doubt = [](const std::string& table, const Names& items) {
    const testing::TempFile file("titles", table);
    return Titles(file.path(), {}, [&](std::string_view name) { return std::ranges::count(items, name) > 0; })
        .doubt(items);
  };
  EXPECT_EQ(doubt("movieId,title\n1,Heat\n6,Fargo\n", {"5.0", "6.0"}),
            "none of the 3 ids is an item of the run (such as \"6\", where the log has \"6.0\")");
  EXPECT_EQ(doubt("movieId,title\n1.0,Heat\n6.0,Fargo\n", {"5", "6"}),
            "none of the 3 ids is an item of the run (such as \"6.0\", where the log has \"6\")");
  EXPECT_EQ(doubt("movieId,title\n007,Heat\n", {"7"}),
            "none of the 2 ids is an item of the run (such as \"007\", where the log has \"7\")");
  EXPECT_EQ(doubt("movieId,title\ntt1,Heat\n", {"7"}),
            "none of the 2 ids is an item of the run (such as \"tt1\", where the log has \"7\")");
  EXPECT_EQ(doubt("movieId,title\n1,Heat\n6.0,Fargo\n", {"1", "6"}), "");
  EXPECT_EQ(Titles(is_item).doubt({"1"}), "");
}

TEST(Titles, EditDistanceIsTheLevenshteinDistance) {
  EXPECT_EQ(edit_distance("kitten", "sitting", 9), 3u);
  EXPECT_EQ(edit_distance("", "abc", 9), 3u);
  EXPECT_EQ(edit_distance("abc", "", 2), 2u);
  EXPECT_EQ(edit_distance("kitten", "sitting", 2), 2u);
  EXPECT_EQ(edit_distance("same", "same", 1), 0u);
}

}  // namespace
}  // namespace qkv
