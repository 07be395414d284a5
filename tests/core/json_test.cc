// Strict JSON: what is refused, and with which words; the JSON parsing test suite of N. Seriot.
#include "core/json.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_if_any;
using testing::expect_contains;

std::string json_error(const std::string& text) {
  return error_if_any([&] { parse_json(text, "a.json"); });
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, ParsesEveryKindOfValue) {
  const auto value =
      parse_json(R"( {"a": [1, -2, 2.5, 1e3], "b": {"c": null, "d": [true, false]}, "": "\u00e9"} )", "");
  EXPECT_EQ(value.dump(), R"({"":"é","a":[1,-2,2.5,1000.0],"b":{"c":null,"d":[true,false]}})");
  EXPECT_TRUE(value["a"][0].is_number_integer());
  EXPECT_FALSE(value["a"][3].is_number_integer());
  EXPECT_EQ(parse_json("18446744073709551615", "").get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808", "").get<int64_t>(), INT64_MIN);
}

TEST(Json, RefusesANameThatStandsTwice) {
  EXPECT_EQ(json_error(R"({"a": 1, "b": {"a": 2}, "a": 1})"), "a.json: the name \"a\" stands twice in one object");
  EXPECT_EQ(json_error(R"({"a": 1, "\u0061": 1})"), "a.json: the name \"a\" stands twice in one object");
}

TEST(Json, LimitsTheDepth) {
  EXPECT_EQ(parse_json(nested(kJsonDepth), "").dump(), nested(kJsonDepth));
  EXPECT_EQ(json_error(nested(kJsonDepth + 1)), "a.json: JSON nested more than 64 levels deep");
  expect_contains(json_error(std::string(1'000'000, '[')), "64 levels");
}

TEST(Json, ErrorsNameTheFileAndTheByte) {
  expect_contains(json_error("{\"a\": x}"), "a.json: not valid JSON at byte 7: ");
  expect_contains(json_error(""), "a.json: not valid JSON at byte 1: ");
  expect_contains(json_error("[1] 2"), "a.json: not valid JSON at byte 5: ");
  expect_contains(json_error("\"\xff\""), "ill-formed UTF-8");
  EXPECT_EQ(json_error("[1e999]"), "a.json: not valid JSON at byte 6: a number beyond the range of double");
  EXPECT_EQ(json_error(std::string("1\0", 2)), "a.json: not valid JSON at byte 2: a NUL byte");
}

TEST(Json, ErrorsAreOneShortLine) {
  const std::string hostile = std::string("\"a\\nb") + std::string(100'000, 'x') + "\"";
  for (const std::string& text : {"{" + hostile + ":1," + hostile + ":1}", "[" + hostile + "\n\n!", hostile + "\n\x01",
                                  "[1" + std::string(1000, '0') + ".5]"}) {
    const std::string error = json_error(text);
    expect_contains(error, "a.json: ");
    EXPECT_LT(error.size(), 400u);
    EXPECT_EQ(error.find('\n'), error.npos);
  }
}

// A value takes up to 25 times the memory of its text.
TEST(Json, ThatWouldTakeMuchMemoryIsRefused) {
  const auto repeated = [](const std::string& value, size_t count) {
    std::string text = "[" + value;
    for (size_t i = 1; i < count; i++) text += "," + value;
    return text + "]";
  };
  EXPECT_EQ(parse_json(repeated("0", 500'000), "a.json").size(), 500'000u);
  for (const char* value : {"0", "[]", "{}", "\"\"", "{\"\":0}"})
    expect_contains(json_error(repeated(value, 1'000'000)), "a.json: JSON of too many values");
}

TEST(Json, AnArrayOfStringsIsReadWithoutValuesAroundThem) {
  const std::vector<std::string> strings = {"", "a\n\"\u00e9", "b"};
  EXPECT_EQ(parse_json_strings(" [\"\", \"a\\n\\\"\u00e9\",\"b\"] ", "x"), strings);
  EXPECT_TRUE(parse_json_strings("[]", "x").empty());
  for (const char* text : {"{}", "\"a\"", "1", "null"})
    EXPECT_EQ(testing::error_of([&] { parse_json_strings(text, "x"); }), "x: not a JSON array of strings") << text;
  for (const char* text : {"[\"a\", 1]", "[\"a\", []]", "[\"a\", {\"b\": 1}]", "[\"a\", null]", "[\"a\", true]"})
    EXPECT_EQ(testing::error_of([&] { parse_json_strings(text, "x"); }), "x: value 1 is not a string") << text;
  for (const char* text : {"", "[", "[\"a\"", "[\"a\"]]", "[\"a\" \"b\"]", "[\"\xFF\"]"})
    testing::expect_contains(testing::error_of([&] { parse_json_strings(text, "x"); }), "x: not valid JSON at byte ");
}

TEST(JsonMembers, AreTakenAsTextAndOthersPassedOver) {
  const std::string text = R"( {"a": "x\n", "more": {"a": [1, {"b": 2}]}, "c": 1.50, "b": -7, "e": null, "d": true} )";
  const std::vector<std::string> names = {"b", "a", "c", "e", "none"};
  std::vector<std::string> values(names.size(), "old");
  parse_json_members(text, "x", names, values);
  EXPECT_EQ(values, (std::vector<std::string>{"-7", "x\n", "1.50", "", ""}));
  const auto error = [&](const std::string& bytes) {
    return error_if_any([&] { parse_json_members(bytes, "x", names, values); });
  };
  EXPECT_EQ(error(R"({"more": 1, "more": 2, "a": 1})"), "");
  EXPECT_EQ(error(R"({"a": 1, "a": 2})"), "x: the name \"a\" stands twice in one object");
  EXPECT_EQ(error(R"({"a": [1]})"), "x: \"a\" is neither a string nor a number");
  EXPECT_EQ(error(R"({"a": {"a": 1}})"), "x: \"a\" is neither a string nor a number");
  EXPECT_EQ(error(R"({"a": false})"), "x: \"a\" is neither a string nor a number");
  for (const char* other : {"5", "[]", "null", "\"a\"", "true"}) EXPECT_EQ(error(other), "x: not a JSON object");
  expect_contains(error("{\"a\": 1} 2"), "x: not valid JSON at byte ");
  expect_contains(error("{\"more\": " + std::string(kJsonDepth, '[') + std::string(kJsonDepth, ']') + "}"),
                  "x: JSON nested more than 64 levels deep");
}

TEST(Json, AgreesWithTheParsingTestSuite) {
  const std::string archive = QKV_SHARED_DIR "/cases/json/json.tar.gz";
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "skipped: ../shared not present";
  const testing::TempDir directory;
  ASSERT_EQ(std::system(("tar xzf '" + archive + "' -C '" + directory.path() + "'").c_str()), 0);
  // Valid by the grammar; refused here on purpose.
  const std::set<std::string> repeated_names = {"y_object_duplicated_key.json",
                                                "y_object_duplicated_key_and_value.json"};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "test_parsing")) {
    const std::string name = entry.path().filename().string();
    std::stringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const std::string error = json_error(text.str());
    if (repeated_names.contains(name)) {
      expect_contains(error, "stands twice");
    } else if (name.starts_with("y_")) {
      EXPECT_EQ(error, "") << name;
    } else if (name.starts_with("n_")) {
      EXPECT_NE(error, "") << name;
    }
    files++;
  }
  EXPECT_EQ(files, 318);
}

TEST(Json, AChoiceIsATextOrTrueOrFalse) {
  constexpr std::array<std::string_view, 3> kNames = {"auto", "true", "false"};
  EXPECT_EQ(find_choice("auto", kNames), 0u);
  EXPECT_EQ(find_choice("true", kNames), 1u);
  EXPECT_EQ(find_choice(true, kNames), 1u);
  EXPECT_EQ(find_choice(false, kNames), 2u);
  for (const nlohmann::json& other : {nlohmann::json("never"), nlohmann::json(), nlohmann::json(1), nlohmann::json("")})
    EXPECT_EQ(find_choice(other, kNames), std::nullopt) << other;
  EXPECT_EQ(find_choice(true, std::array<std::string_view, 1>{"auto"}), std::nullopt);
}

}  // namespace
}  // namespace qkv
