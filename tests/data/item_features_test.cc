// Categories and words of items, read from tables.
#include "data/log/item_features.h"

#include <gtest/gtest.h>

#include "core/to_size.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Names = std::vector<std::string>;

const std::string kFilms =
    "movieId,title,genres\n"
    "1,Heat (1995),Crime|Thriller\n"
    "3,\"Heat, The (2013)\",Comedy|Crime\n"
    "9,\"Émile, l'été (1995)\",Comedy|Comedy\n"
    "77,Elsewhere,Western|Comedy\n";

const Names kItems = {"3", "8", "1", "9"};

struct Read {
  ItemFeatures features;
  std::string report;

  Names of(int64_t item) const {
    Names names;
    for (const int32_t id : features.of(item)) names.push_back(features.names.at(to_size(id)));
    return names;
  }
};

Read read(const std::string& table, const Names& columns = {}, const Names& known = {}) {
  Read read;
  const testing::TempFile file("features", table);
  read.features = read_item_features(file.path(), columns, kItems, known, read.report);
  return read;
}

TEST(ItemFeatures, AreTheCategoriesOfAtLeastTwoItems) {
  const Read found = read(kFilms);
  EXPECT_EQ(found.features.names, Names({"genres: Crime", "genres: Comedy"}));  // Thriller is 1's alone, as are titles
  EXPECT_EQ(found.features.items(), 4);
  EXPECT_EQ(found.of(0), Names({"genres: Crime", "genres: Comedy"}));
  EXPECT_EQ(found.of(1), Names());
  EXPECT_EQ(found.of(2), Names({"genres: Crime"}));
  EXPECT_EQ(found.of(3), Names({"genres: Comedy"}));
  testing::expect_contains(found.report,
                           "3 of 4 items have 2 distinct features, 1.3 each; skipped 4 features of a single item "
                           "and 1 items that are not in the log");
}

TEST(ItemFeatures, AreTheWordsOfAColumnMarkedAsWords) {
  const Read found = read(kFilms, {"movieId", "title:words"});
  EXPECT_EQ(found.features.names, Names({"title: heat", "title: 1995"}));
  EXPECT_EQ(found.of(0), Names({"title: heat"}));
  EXPECT_EQ(found.of(3), Names({"title: 1995"}));
  EXPECT_EQ(read("1\tÉté\n3\tété-là\n", {"1", "2:words"}).features.names, Names({"2: été"}));
}

TEST(ItemFeatures, AreReadFromTablesWithoutAHeader) {
  const Read found = read("1::Heat::Crime\n3::Heat::Crime|Comedy\n", {"1", "3"});
  EXPECT_EQ(found.features.names, Names({"3: Crime"}));
  EXPECT_EQ(found.of(2), Names({"3: Crime"}));
}

TEST(ItemFeatures, KnownFeaturesKeepTheirIds) {
  const Read found = read(kFilms, {}, {"genres: Noir", "genres: Comedy"});
  EXPECT_EQ(found.features.names, Names({"genres: Noir", "genres: Comedy", "genres: Crime"}));
  EXPECT_EQ(found.of(0), Names({"genres: Comedy", "genres: Crime"}));
}

TEST(ItemFeatures, InvalidTablesAreRejected) {
  for (const auto& [table, columns, expected] : std::initializer_list<std::tuple<std::string, Names, std::string>>{
           {"id,genre\n1,Crime\n3\n", {}, ":3: expected 2 columns as in the first line (found 1)"},
           {"id,genre\n5,Crime\n", {}, "the item column contains none of the log's 4 items"},
           {"id,genre\n1,Crime\n3,Comedy\n", {}, "no feature is shared by two of the log's items"},
           {"id,genre\n1,Crime\n", {"id"}, ":1: expected at least one feature column"},
           {"id,genre\n1,Crime\n", {"id", "colour"}, ":1: no column \"colour\" among the 2 columns"},
           {"id,genre\n1,\"Crime\n", {}, ":2: a quoted field is not closed"},
           {"", {}, "the item column contains none of the log's 4 items"}})
    testing::expect_contains(error_of([&] { read(table, columns); }), expected);
}

TEST(NewItems, AreThoseThatTheLogLacksWithKnownFeatures) {
  const testing::TempFile file("new",
                               "movieId,title,genres\n1,Heat,Crime\n5,Heat 2,Comedy|Drama\n6,Lost,Drama\n"
                               "7,\"lost, HEAT\",\n5,Other,Crime\n,Heat,Crime\n");
  const Names known = {"title: heat", "genres: Crime", "genres: Comedy"};
  const NewItems found = read_new_items(file.path(), {"movieId", "genres", "title:words"}, kItems, known);
  EXPECT_EQ(found.names, (Names{"5", "7"}));
  EXPECT_EQ(found.features.ids, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(found.features.offsets, (std::vector<int64_t>{0, 3, 4}));
  EXPECT_EQ(found.known_rows, 1);
  EXPECT_EQ(found.without_features, 1);
  EXPECT_EQ(found.unknown_features, 4);  // the words 2, lost and other, and Drama
}

TEST(NewItems, OfATableWithoutAHeaderAreReadByTheNumbersOfColumns) {
  const testing::TempFile file("new", "5;Comedy\n6;Crime\n");
  const NewItems found = read_new_items(file.path(), {"1", "2"}, kItems, {"2: Crime", "2: Comedy"});
  EXPECT_EQ(found.names, (Names{"5", "6"}));
  EXPECT_EQ(found.features.ids, (std::vector<int32_t>{1, 0}));
}

}  // namespace
}  // namespace qkv
