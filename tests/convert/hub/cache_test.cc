#include "convert/hub/cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::slurp;
using testing::spill;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

class HubCacheTest : public ::testing::Test {
 protected:
  // The path of a blob that has not arrived.
  std::string blob() {
    std::filesystem::create_directories(directory_ / "models--a--b/blobs");
    return cache_.blob("e");
  }

  testing::TempDir directory_;
  const HubCache cache_{directory_.path(), "a/b"};
};

TEST_F(HubCacheTest, RemembersTheCommitOfARevision) {
  EXPECT_EQ(cache_.commit_of("refs/pr/1"), std::nullopt);
  EXPECT_EQ(cache_.commit_of(kCommit), kCommit);
  cache_.set_commit("refs/pr/1", kCommit);
  EXPECT_EQ(cache_.commit_of("refs/pr/1"), kCommit);
  EXPECT_EQ(slurp(directory_ / "models--a--b/refs/refs/pr/1"), kCommit);
  spill(directory_ / "models--a--b/refs/refs/pr/1", std::string(kCommit) + "\n");
  EXPECT_EQ(cache_.commit_of("refs/pr/1"), kCommit);
  spill(directory_ / "models--a--b/refs/refs/pr/1", "../../x");
  EXPECT_EQ(
      error_of([&] { cache_.commit_of("refs/pr/1"); }),
      directory_ / "models--a--b/refs/refs/pr/1" + ": must be a commit of 40 hexadecimal digits (is \"../../x\")");
}

TEST_F(HubCacheTest, LinksFilesToBlobs) {
  spill(blob(), "text");
  for (const char* name : {"config.json", "1_Pooling/config.json"}) {
    cache_.link(kCommit, name, "e");
    EXPECT_EQ(slurp(cache_.file(kCommit, name)), "text");
  }
  cache_.link(kCommit, "config.json", "e");  // again
  cache_.link(kCommit, "missing", "other");
  EXPECT_EQ(cache_.files(kCommit), (std::vector<std::string>{"1_Pooling/config.json", "config.json"}));
  cache_.link(kCommit, "missing", "e");  // the blob that it named was removed, for instance
  EXPECT_EQ(slurp(cache_.file(kCommit, "missing")), "text");
}

TEST_F(HubCacheTest, KeepsWhatHasArrivedOfABlob) {
  const std::string path = blob();
  IncompleteBlob(path).write("ab");
  EXPECT_EQ(slurp(path + ".incomplete"), "ab");
  IncompleteBlob rest(path);
  EXPECT_EQ(rest.size(), 2);
  rest.write("c");
  EXPECT_FALSE(std::filesystem::exists(path));
  rest.commit();
  EXPECT_EQ(slurp(path), "abc");
  EXPECT_FALSE(std::filesystem::exists(path + ".incomplete"));
}

// `printf abc | sha256sum`, `printf abc | git hash-object --stdin`
TEST_F(HubCacheTest, ComparesTheChecksumOfTheEtagsLength) {
  IncompleteBlob file(blob());
  file.write("x");
  file.restart();
  file.write("abc");
  EXPECT_EQ(file.checksum_like(std::string(64, '0'), [] {}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(file.checksum_like(std::string(40, '0'), [] {}), "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
  EXPECT_EQ(file.checksum_like("an-ETag", [] {}), "an-ETag");
}

TEST(HubEtag, IsTheNameOfAFile) {
  EXPECT_EQ(clean_etag("\"abc-1\""), "abc-1");
  EXPECT_EQ(clean_etag("W/\"abc\""), "abc");
  EXPECT_EQ(clean_etag("abc"), "abc");
  for (const char* etag : {"", "\"\"", "\"../x\"", "\"a/b\"", "\"a b\"", "..", "\"a", "a\n"})
    EXPECT_EQ(clean_etag(etag), std::nullopt) << etag;
  EXPECT_EQ(clean_etag(std::string(129, 'a')), std::nullopt);
}

}  // namespace
}  // namespace qkv
