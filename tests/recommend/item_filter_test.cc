// Conditions on the attributes of items.
#include "recommend/item_filter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using Ids = std::vector<int32_t>;

// Items i0 … i5; i4 has no attributes, and i5 is not in the table.
class ItemFilterTest : public ::testing::Test {
 protected:
  ItemFilterTest() {
    testing::spill(path,
                   "item,Genre,year,price,title\n"
                   "i0,Comedy,1990,19.5,\"Heat, Part 1\"\n"
                   "i1,Comedy|Crime, 1989 ,20,ÄRGER\n"
                   "x,Comedy,1990,1,Lost\n"
                   "i2,Crime,1990.0,,Fargo\n"
                   "i3,drama,unknown,-3e1,nan\n"
                   "i2,Comedy,1,1,Other\n"
                   "i4,,,,\n");
    table = ItemTable(path, "", items);
  }

  Ids filtered(const std::vector<std::string>& texts) const {
    Ids found(6);
    std::iota(found.begin(), found.end(), 0);
    for (const ItemCondition& condition : parse_conditions(texts, table)) condition.filter(found);
    return found;
  }
  std::string refusal(const std::string& text) const {
    return error_of([&] { filtered({text}); });
  }

  testing::TempDir directory;
  std::string path = directory / "table.csv";
  const NameTable items{{"i0", "i1", "i2", "i3", "i4", "i5"}};
  ItemTable table;
};

TEST_F(ItemFilterTest, EqualityIgnoresCaseAndMatchesAnyPart) {
  EXPECT_EQ(filtered({"genre=comedy"}), (Ids{0, 1}));
  EXPECT_EQ(filtered({" GENRE = CRIME "}), (Ids{1, 2}));
  EXPECT_EQ(filtered({"genre=drama|crime"}), (Ids{1, 2, 3}));
  EXPECT_EQ(filtered({"genre=com"}), Ids{});
  EXPECT_EQ(filtered({"title=heat, part 1"}), Ids{0});
  EXPECT_EQ(filtered({"title=ärger"}), Ids{1});
}

TEST_F(ItemFilterTest, InequalityHoldsForEveryOtherItem) {
  EXPECT_EQ(filtered({"genre!=comedy"}), (Ids{2, 3, 4, 5}));
  EXPECT_EQ(filtered({"genre!=comedy|crime"}), (Ids{3, 4, 5}));
}

TEST_F(ItemFilterTest, NumbersCompareAsNumbers) {
  EXPECT_EQ(filtered({"year=1990"}), (Ids{0, 2}));
  EXPECT_EQ(filtered({"year!=1.99e3"}), (Ids{1, 3, 4, 5}));
  EXPECT_EQ(filtered({"price<20"}), (Ids{0, 3}));
  EXPECT_EQ(filtered({"price<=20"}), (Ids{0, 1, 3}));
  EXPECT_EQ(filtered({"price>-30"}), (Ids{0, 1}));
  EXPECT_EQ(filtered({"price >= -30"}), (Ids{0, 1, 3}));
  EXPECT_EQ(filtered({"title<1"}), Ids{});  // neither texts nor "nan" are numbers
  EXPECT_EQ(filtered({"title=nan"}), Ids{3});
}

TEST_F(ItemFilterTest, ContainsLooksWithinTheText) {
  EXPECT_EQ(filtered({"title~part"}), Ids{0});
  EXPECT_EQ(filtered({"title~FAR|rger"}), (Ids{1, 2}));
}

TEST_F(ItemFilterTest, SeveralConditionsMustAllHold) {
  EXPECT_EQ(filtered({"genre=comedy", "year<1990"}), Ids{1});
  EXPECT_EQ(filtered({"genre=comedy", "genre=drama"}), Ids{});
  EXPECT_EQ(filtered({}), (Ids{0, 1, 2, 3, 4, 5}));
}

TEST_F(ItemFilterTest, ColumnsHaveNamesOrNumbers) {
  EXPECT_EQ(filtered({"3>=1990"}), (Ids{0, 2}));
  testing::spill(path, "Comedy\ti0\nDrama\ti1\n");
  table = ItemTable(path, "2", items);
  EXPECT_EQ(filtered({"1=comedy"}), Ids{0});
  EXPECT_EQ(refusal("2=i0"), "where \"2=i0\": no column \"2\" (choose from comedy)");
}

TEST_F(ItemFilterTest, RefusesInvalidConditionsInOneLine) {
  const std::string form = ": must be a column, one of = != < <= > >= ~, and a value, such as genre=comedy";
  for (const std::string text : {"", "genre", "=comedy", " <3", "genre!comedy"})
    EXPECT_EQ(refusal(text), "where \"" + text + "\"" + form);
  EXPECT_EQ(refusal("genres=comedy"),
            "where \"genres=comedy\": no column \"genres\" (choose from genre, year, price, title)");
  EXPECT_EQ(refusal("item=i0").find("where \"item=i0\": no column \"item\""), 0u);
  EXPECT_EQ(refusal("0=x").find("where \"0=x\": no column \"0\""), 0u);
  EXPECT_EQ(refusal("genre= "), "where \"genre= \": has no value after =");
  EXPECT_EQ(refusal("genre=||"), "where \"genre=||\": has no value after =");
  EXPECT_EQ(refusal("price<cheap"), "where \"price<cheap\": < requires a number (is \"cheap\")");
  EXPECT_EQ(refusal("price>=1|2"), "where \"price>=1|2\": >= requires a number (is \"1|2\")");
  EXPECT_EQ(refusal("price<inf"), "where \"price<inf\": < requires a number (is \"inf\")");
  EXPECT_EQ(refusal("genre=\xff").find("is not valid UTF-8") == std::string::npos, false);
  testing::expect_contains(refusal("genre=" + std::string(1000, 'a')), "must have at most 1000 bytes (has 1006)");
  EXPECT_EQ(error_of([&] { parse_conditions(std::vector<std::string>(101, "genre=a"), table); }),
            "where must have at most 100 conditions (has 101)");
  EXPECT_EQ(error_of([&] { parse_conditions(std::vector<std::string>{"genre=a"}, ItemTable()); }),
            "where requires a catalogue, a table of items and their attributes");
}

TEST_F(ItemFilterTest, RefusesInvalidTables) {
  testing::spill(path, "item,genre\ni0,Comedy\ni1\n");
  EXPECT_EQ(error_of([&] { ItemTable(path, "", items); }),
            path + ":3: expected 2 columns as in the first line (found 1)");
  testing::spill(path, "item,genre\nz,Comedy\n");
  EXPECT_EQ(error_of([&] { ItemTable(path, "", items); }),
            path + ": the item column contains none of the run's 6 items (such as \"z\", where the log has \"i0\")");
  EXPECT_EQ(error_of([&] { ItemTable(path, "id", items); }), path + ":1: no column \"id\" among the 2 columns");
  EXPECT_NE(error_of([&] { ItemTable(directory / "missing", "", items); }), "");
}

}  // namespace
}  // namespace qkv
