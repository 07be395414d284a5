// One list of fields writes, reads and overrides a struct of options.
#include "core/fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::error_of;

enum class Colour { red, green, blue };
constexpr std::array<std::string_view, 3> names_of(Colour) { return {"red", "green", "blue"}; }

struct Options {
  bool fast = false;
  int64_t steps = 100;
  double rate = 0.1;
  std::string name = "run";
  Colour colour = Colour::green;
  std::vector<std::string> tags;

  bool operator==(const Options&) const = default;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& visit) {
  visit("fast", o.fast);
  visit("steps", o.steps);
  visit("rate", o.rate, "with a meaning");
  visit("name", o.name);
  visit("colour", o.colour);
  visit("tags", o.tags);
}

std::string error_in(const std::string& text, Missing missing = Missing::kept) {
  Options options;
  const std::string error = error_if_any([&] { fields_from_json(options, text, "o.json", missing); });
  EXPECT_EQ(options == Options(), !error.empty()) << "options change only without an error";
  return error;
}

TEST(Fields, AreWrittenInTheOrderOfTheList) {
  EXPECT_EQ(json_from_fields(Options()), R"({
  "fast": false,
  "steps": 100,
  "rate": 0.1,
  "name": "run",
  "colour": "green",
  "tags": []
}
)");
}

TEST(Fields, ComeBackAsTheyWere) {
  for (double rate : {0.0, 1e-300, 0.1 + 0.2, -1e22, 5e-324, std::numeric_limits<double>::max()}) {
    const Options written = {true,       std::numeric_limits<int64_t>::min(), rate, "a \"b\"\n\u00e9\x01", Colour::blue,
                             {"a", "\""}};
    Options read;
    fields_from_json(read, json_from_fields(written), "", Missing::refused);
    EXPECT_EQ(read, written);
  }
}

TEST(Fields, KeepTheirValuesWhereMissingOnesMay) {
  Options options;
  options.steps = 7;
  fields_from_json(options, R"({"rate": 2, "colour": "red"})", "", Missing::kept);
  EXPECT_EQ(options, (Options{false, 7, 2, "run", Colour::red, {}}));
}

TEST(Fields, ErrorsNameTheFieldAndWhatWasWanted) {
  EXPECT_EQ(error_in(R"({"step": 1})"), "o.json: unknown name \"step\"; did you mean \"steps\"?");
  EXPECT_EQ(error_in(R"({"temperature": 1})"), "o.json: unknown name \"temperature\"");
  EXPECT_EQ(error_in(R"({"fast": true, "rate": 1, "name": ""})", Missing::refused),
            "o.json: missing steps, colour, tags");
  EXPECT_EQ(error_in(R"({"steps": 1.0})"), "o.json: steps is 1.0, wanted an integer");
  EXPECT_EQ(error_in(R"({"steps": 9223372036854775808})"),
            "o.json: steps is 9223372036854775808, beyond a 64-bit integer");
  EXPECT_EQ(error_in(R"({"steps": 18446744073709551616})"),
            "o.json: steps is 1.8446744073709552e+19, wanted an integer");
  EXPECT_EQ(error_in(R"({"fast": 1})"), "o.json: fast is 1, wanted true or false");
  EXPECT_EQ(error_in(R"({"rate": "0.1"})"), "o.json: rate is \"0.1\", wanted a number");
  EXPECT_EQ(error_in(R"({"name": null})"), "o.json: name is null, wanted a string");
  EXPECT_EQ(error_in(R"({"name": []})"), "o.json: name is an array, wanted a string");
  EXPECT_EQ(error_in(R"({"colour": "rot"})"), "o.json: colour is \"rot\", wanted one of red, green, blue");
  EXPECT_EQ(error_in(R"({"tags": ["a", 1]})"), "o.json: tags is an array, wanted an array of strings");
  EXPECT_EQ(error_in(R"({"tags": "a"})"), "o.json: tags is \"a\", wanted an array of strings");
  EXPECT_EQ(error_in("[]"), "o.json: found an array, wanted a JSON object");
}

TEST(Fields, ThatAreNotFiniteCannotBeWritten) {
  Options options;
  options.rate = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { json_from_fields(options); }), "rate: inf cannot be written as JSON");
}

TEST(Fields, NearestNameIsAFewEditsAway) {
  const std::vector<std::string_view> names = {"d_model", "heads", "ffn"};
  EXPECT_EQ(nearest_name("dmodel", names), "d_model");
  EXPECT_EQ(nearest_name("d-modle", names), "d_model");
  EXPECT_EQ(nearest_name("head", names), "heads");
  EXPECT_EQ(nearest_name("dropout", names), "");
  EXPECT_EQ(nearest_name(std::string(1000, 'x'), names), "");
}

}  // namespace
}  // namespace qkv
