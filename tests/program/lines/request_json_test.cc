// Requests as JSON: the order of names, levels, errors, and long lists.
#include "program/lines/request_json.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

std::string read_back(std::string_view text) { return json_text(parse_request_json(text)); }

TEST(RequestJson, KeepsNamesInTheirOrder) {
  EXPECT_EQ(read_back(R"( {"b": 1, "a": {"z": [], "y": {}}, "": null} )"), R"({"b":1,"a":{"z":[],"y":{}},"":null})");
}

TEST(RequestJson, WritesValuesInOneWay) {
  EXPECT_EQ(read_back(R"({"a": [1e2, 1.0, -7, 18446744073709551615, true, "\u00e9\u000a\/"]})"),
            R"({"a":[100.0,1.0,-7,18446744073709551615,true,"é\n/"]})");
}

TEST(RequestJson, HasNoNameTwiceInOneObject) {
  EXPECT_EQ(read_back(R"({"a":{"a":[{"a":1},{"a":2}]},"b":{"a":3}})"), R"({"a":{"a":[{"a":1},{"a":2}]},"b":{"a":3}})");
  for (const char* text : {R"({"a\n": 1, "b": 2, "\u0061\n": 3})", R"({"b": {"a\n": [], "a\n": []}})"})
    EXPECT_EQ(error_of([&] { read_back(text); }), R"(the name "a\n" stands twice in one object)") << text;
}

TEST(RequestJson, HasNoNul) {
  for (const std::string_view text : {std::string_view("{}\0", 3), std::string_view("{}\0{}", 5)})
    EXPECT_EQ(error_of([&] { read_back(text); }), "not valid JSON");
}

TEST(RequestJson, HasAtMostFourLevels) {
  EXPECT_EQ(read_back(R"({"a":[[[1]]]})"), R"({"a":[[[1]]]})");
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  for (const std::string_view text :
       {R"({"a":[[[[1]]]]})", R"({"a":[[[{"b":1}]]]})", R"({"a":{"b":{"c":{"d":{"e":1}}}}})", deep.c_str()})
    EXPECT_EQ(error_of([&] { read_back(text); }), "JSON must have at most 4 levels") << text.substr(0, 40);
}

TEST(RequestJson, IsOneObject) {
  for (const char* text : {"", "{", "{} {}", "{\"a\":1e999}", "{\"a\":\"\xFF\"}", "{a:1}", "{\"a\":1,}", "{\"\n\":1}"})
    EXPECT_EQ(error_of([&] { read_back(text); }), "not valid JSON") << text;
  for (const char* text : {"[]", "1", "null", "\"{}\""})
    EXPECT_EQ(error_of([&] { read_back(text); }), "not a JSON object") << text;
}

// Takes a second. If the time grew with the square of the length, it would be many minutes.
TEST(RequestJson, ReadsLongListsAndObjects) {
  std::string text = R"({"list":[{})";
  for (int i = 1; i < 1'000'000; i++) text += ",{}";
  text += R"(],"object":{"0":0)";
  for (int i = 1; i < 300'000; i++) text += ",\"" + std::to_string(i) + "\":0";
  const nlohmann::ordered_json json = parse_request_json(text + "}}");
  EXPECT_EQ(json.at("list").size(), 1'000'000U);
  EXPECT_EQ(json.at("object").size(), 300'000U);
}

TEST(RequestJson, PutsTheIdFirst) {
  EXPECT_EQ(json_text_with_id("", {{"a", 1}}), R"({"a":1})");
  EXPECT_EQ(json_text_with_id("[1,\"x\"]", {{"a", 1}}), R"({"id":[1,"x"],"a":1})");
}

}  // namespace
}  // namespace qkv
