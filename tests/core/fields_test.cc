// One list of fields writes, reads, overrides and checks a struct of options.
#include "core/fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "qkv/text.h"
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
  uint64_t seed = 1;
  std::optional<Colour> other = {};

  bool operator==(const Options&) const = default;
};

template <class Visitor>
void visit_fields(Options& o, Visitor&& visit) {
  visit("fast", o.fast);
  visit("steps", o.steps);
  visit("rate", o.rate, "Speed");
  visit("name", o.name);
  visit("colour", o.colour);
  visit("tags", o.tags);
  visit("seed", o.seed);
  visit("other", o.other);
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
  "tags": [],
  "seed": 1,
  "other": null
}
)");
}

TEST(Fields, SurviveARoundTrip) {
  for (double rate : {0.0, 1e-300, 0.1 + 0.2, -1e22, 5e-324, std::numeric_limits<double>::max()}) {
    const Options written = {
        true,        std::numeric_limits<int64_t>::min(),  rate,       "a \"b\"\n\u00e9\x01", Colour::blue,
        {"a", "\""}, std::numeric_limits<uint64_t>::max(), Colour::red};
    Options read;
    fields_from_json(read, json_from_fields(written), "", Missing::refused);
    EXPECT_EQ(read, written);
  }
}

TEST(Fields, KeepTheirValuesWhereTheJsonLacksThem) {
  Options options;
  options.steps = 7;
  fields_from_json(options, R"({"rate": 2, "colour": "red"})", "", Missing::kept);
  EXPECT_EQ(options, (Options{false, 7, 2, "run", Colour::red, {}, 1, {}}));
}

TEST(Fields, ErrorsNameTheFieldAndWhatIsAccepted) {
  EXPECT_EQ(error_in(R"({"step": 1})"), "o.json: unknown name \"step\"; did you mean \"steps\"?");
  EXPECT_EQ(error_in(R"({"temperature": 1})"), "o.json: unknown name \"temperature\"");
  EXPECT_EQ(error_in(R"({"fast": true, "rate": 1, "name": ""})", Missing::refused),
            "o.json: missing steps, colour, tags, seed, other");
  EXPECT_EQ(error_in(R"({"steps": 1.0})"), "o.json: steps must be an integer (is 1.0)");
  EXPECT_EQ(error_in(R"({"steps": 9223372036854775808})"),
            "o.json: steps must fit in 64 bits (is 9223372036854775808)");
  EXPECT_EQ(error_in(R"({"steps": 18446744073709551616})"),
            "o.json: steps must be an integer (is 1.8446744073709552e+19)");
  EXPECT_EQ(error_in(R"({"fast": 1})"), "o.json: fast must be true or false (is 1)");
  EXPECT_EQ(error_in(R"({"rate": "0.1"})"), "o.json: rate must be a number (is \"0.1\")");
  EXPECT_EQ(error_in(R"({"name": null})"), "o.json: name must be a string (is null)");
  EXPECT_EQ(error_in(R"({"name": []})"), "o.json: name must be a string (is an array)");
  EXPECT_EQ(error_in(R"({"colour": "rot"})"), "o.json: colour must be one of red, green, blue (is \"rot\")");
  EXPECT_EQ(error_in(R"({"tags": ["a", 1]})"), "o.json: tags must be an array of strings (is an array)");
  EXPECT_EQ(error_in(R"({"tags": "a"})"), "o.json: tags must be an array of strings (is \"a\")");
  EXPECT_EQ(error_in("[]"), "o.json: must be a JSON object (is an array)");
}

TEST(Fields, OptionalOnesAreReadFromNullAndFromAValue) {
  Options options;
  fields_from_json(options, R"({"other": "blue", "seed": 18446744073709551615})", "", Missing::kept);
  EXPECT_EQ(options.other, Colour::blue);
  EXPECT_EQ(options.seed, std::numeric_limits<uint64_t>::max());
  fields_from_json(options, R"({"fast": true})", "", Missing::kept);
  EXPECT_EQ(options.other, Colour::blue);
  fields_from_json(options, R"({"other": null})", "", Missing::kept);
  EXPECT_EQ(options.other, std::nullopt);
  EXPECT_EQ(error_in(R"({"seed": -1})"), "o.json: seed must be a whole number from 0 (is -1)");
  EXPECT_EQ(error_in(R"({"other": 1})"), "o.json: other must be one of red, green, blue (is 1)");
}

TEST(Fields, ThatAreNotFiniteCannotBeWrittenAsJson) {
  Options options;
  options.rate = std::numeric_limits<double>::infinity();
  EXPECT_EQ(error_of([&] { json_from_fields(options); }), "rate: inf cannot be written as JSON");
}

struct Limits {
  int64_t beam = 5;
  double top_p = 1, rate = 0, share = 0.1, any = 0;
  std::optional<int64_t> length = {};
  std::vector<int64_t> widths = {};
};

template <class Visitor>
void visit_fields(Limits& o, Visitor&& visit) {
  visit("beam", o.beam, {"Hypotheses", "search", between(1, 16)});
  visit("top_p", o.top_p, {"Nucleus", "sampling", between(0, 1).without_min()});
  visit("rate", o.rate, {"Dropout", "model", between(0, 1).without_max()});
  visit("share", o.share, {"Share", "data", above(0)});
  visit("any", o.any, "Any number");
  visit("length", o.length, {"Length", "search", at_least(1)});
  visit("widths", o.widths, {"Widths", "model", at_least(1)});
}

TEST(Fields, ErrorsOfRangesNameTheFieldTheRangeAndTheValue) {
  const auto error = [](auto Limits::*member, auto value) {
    Limits options;
    options.*member = value;
    return error_if_any([&] { check_ranges(options); });
  };
  EXPECT_EQ(error(&Limits::beam, 16), "");
  EXPECT_EQ(error(&Limits::beam, 40), "beam must be between 1 and 16 (is 40)");
  EXPECT_EQ(error(&Limits::top_p, 1), "");
  EXPECT_EQ(error(&Limits::top_p, 0), "top_p must be above 0 and at most 1 (is 0)");
  EXPECT_EQ(error(&Limits::rate, 0), "");
  EXPECT_EQ(error(&Limits::rate, 1), "rate must be at least 0 and below 1 (is 1)");
  EXPECT_EQ(error(&Limits::share, 0), "share must be above 0 (is 0)");
  EXPECT_EQ(error(&Limits::share, std::numeric_limits<double>::infinity()), "share must be above 0 (is inf)");
  EXPECT_EQ(error(&Limits::any, -1e300), "");
  EXPECT_EQ(error(&Limits::any, std::nan("")), "any must be finite (is nan)");
  EXPECT_EQ(error(&Limits::length, 0), "length must be at least 1 (is 0)");
  EXPECT_EQ(error(&Limits::widths, std::vector<int64_t>{4, 0}), "widths must be at least 1 (is 0)");
  EXPECT_EQ(error_of([] { check_ranges(Limits{.beam = 0}, "training: "); }),
            "training: beam must be between 1 and 16 (is 0)");
}

TEST(Fields, ListsOfIntegersSurviveARoundTrip) {
  Limits read;
  fields_from_json(read, json_from_fields(Limits{.widths = {64, -1}}), "", Missing::refused);
  EXPECT_EQ(read.widths, (std::vector<int64_t>{64, -1}));
  for (const auto& [text, found] : {std::pair{"[1.5]", "an array"}, {"[9223372036854775808]", "an array"}, {"3", "3"}})
    EXPECT_EQ(
        error_of([&] { fields_from_json(read, fmt::format("{{\"widths\": {}}}", text), "o.json", Missing::kept); }),
        fmt::format("o.json: widths must be an array of integers of 64 bits (is {})", found));
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
