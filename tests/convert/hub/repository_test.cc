#include "convert/hub/repository.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

TEST(HubName, HasOwnerNameFileAndRevision) {
  const HubName whole = parse_hub_name("hf:Helsinki-NLP/opus-mt-en-de");
  EXPECT_EQ(whole.repository, "Helsinki-NLP/opus-mt-en-de");
  EXPECT_EQ(whole.revision, "main");
  EXPECT_EQ(whole.file, "");
  const HubName part = parse_hub_name("hf:a/b_1.c/gguf/model-q8.gguf@refs/pr/1");
  EXPECT_EQ(part.repository, "a/b_1.c");
  EXPECT_EQ(part.revision, "refs/pr/1");
  EXPECT_EQ(part.file, "gguf/model-q8.gguf");
  EXPECT_EQ(parse_hub_name("hf:gpt2@607a30d783dfa663caf39e06633721c8d4cfcd7e").repository, "gpt2");
}

TEST(HubName, RefusesWhatTheHubDoesNotAllow) {
  const std::string long_name(97, 'a');
  for (const std::string name :
       {"",         "/",       "a/",       "/a",       ".a/b",    "a/b.",    "-a/b",    "a--b/c",
        "a..b/c",   "a/b.git", "a b/c",    "a/é",      "a/b@",    "a/b@..",  "a/b@a b", "a/b@/a",
        "a/b@a//b", "a/b/",    "a/b/../c", "a/b/c//d", "a/b/c\n", "a/b/c\\d"})
    EXPECT_NE(error_of([&] { parse_hub_name("hf:" + name); }).find(" is not valid (is "), std::string::npos) << name;
  EXPECT_NE(error_of([&] { parse_hub_name("hf:a/" + long_name); }).find("the name is not valid"), std::string::npos);
}

TEST(HubName, DiffersFromAPathByItsPrefix) {
  EXPECT_TRUE(is_hub_name("hf:a/b"));
  EXPECT_FALSE(is_hub_name("./hf:a/b"));
  EXPECT_FALSE(is_hub_name("hf"));
}

TEST(HubName, SafePathsStayBelowTheirDirectory) {
  for (const char* path : {"a", "a/b.c", "..a/b..", "1_Pooling/config.json", "ä"})
    EXPECT_TRUE(is_safe_path(path)) << path;
  for (const char* path : {"", ".", "..", "/a", "a/", "a//b", "a/./b", "a/../b", "a\\b", "a\tb", "a\x7f"})
    EXPECT_FALSE(is_safe_path(path)) << path;
  EXPECT_FALSE(is_safe_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_safe_path(std::string(201, 'a')));
}

TEST(HubName, IsEncodedForUrls) {
  EXPECT_EQ(percent_encode("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encode("1_Pooling/a b%ä.json", "/"), "1_Pooling/a%20b%25%C3%A4.json");
}

}  // namespace
}  // namespace qkv
