// The file of keys, and the keys of requests.
#include "serve/http/api_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::spill;
using testing::TempDir;

const std::string kAlice = "alices-key-0123456789", kBob = "~bobs!key~\"#$%&'()*+,";

class KeyFile {
 public:
  explicit KeyFile(const std::string& text) { write(text); }
  void write(const std::string& text) const { spill(path, text); }
  // The error of reading the file, without its path.
  std::string error() const {
    const std::string message = error_of([&] { ApiKeys keys(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    EXPECT_EQ(message.find("key-0123456789"), std::string::npos) << message;
    return message.substr(std::min(path.size() + 2, message.size()));
  }

 private:
  TempDir directory_;

 public:
  const std::string path = directory_ / "keys";
};

TEST(ApiKeys, NameTheClientOfAKey) {
  const KeyFile file("# keys\n\nalice " + kAlice + "\r\nbob.2_-X " + kBob + "\n\r\n");
  const ApiKeys keys(file.path);
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys.name_of(kAlice), "alice");
  EXPECT_EQ(keys.name_of(kBob), "bob.2_-X");
}

TEST(ApiKeys, KnowNoOtherKey) {
  const KeyFile file("alice " + kAlice);
  const ApiKeys keys(file.path);
  for (const std::string& key : {std::string(), std::string("alice"), kAlice + "x", kAlice.substr(1), "alice " + kAlice,
                                 std::string("ALICES-KEY-0123456789"), kAlice + '\0', std::string(100'000, 'a')})
    EXPECT_FALSE(keys.name_of(key)) << key;
}

TEST(ApiKeys, RefuseLinesThatAreNotANameAndAKey) {
  const std::string expected =
      "line 2: must be NAME KEY, with a name of 1 to 64 letters, digits, dots, underscores and hyphens, and a key of "
      "16 "
      "to 256 printable ASCII characters without spaces";
  for (const std::string& line :
       {std::string("alice"), kAlice, "alice\t" + kAlice, "alice  " + kAlice, "alice " + kAlice + " ",
        " alice " + kAlice, "al/ice " + kAlice, "alice key-0123456789 " + kAlice, std::string("alice 123456789012345"),
        "alice " + std::string(257, 'x'), std::string(65, 'x') + " " + kAlice, "alice " + kAlice + "\x7f",
        "alice " + kAlice + "\xc3\xa9", "al\xc3\xa9 " + kAlice, " " + kAlice, std::string("alice \0", 7) + kAlice,
        std::string(" # a comment")})
    EXPECT_EQ(KeyFile("# keys\n" + line + "\n").error(), expected) << line;
  EXPECT_EQ(ApiKeys(KeyFile("a 1234567890123456").path).size(), 1u);
  EXPECT_EQ(ApiKeys(KeyFile(std::string(64, 'x') + " " + std::string(256, 'x')).path).size(), 1u);
}

TEST(ApiKeys, RefuseNamesAndKeysThatOccurTwice) {
  EXPECT_EQ(KeyFile("alice " + kAlice + "\nbob " + kBob + "\n\nalice another-key-0123456789\n").error(),
            "line 4: has the name of line 1");
  EXPECT_EQ(KeyFile("alice " + kAlice + "\nbob " + kAlice).error(), "line 2: has the key of line 1");
}

TEST(ApiKeys, RefuseFilesWithoutKeysAndFilesThatAreTooLarge) {
  EXPECT_EQ(KeyFile("").error(), "has no keys; each line must be NAME KEY");
  EXPECT_EQ(KeyFile("# nobody\n").error(), "has no keys; each line must be NAME KEY");
  EXPECT_EQ(KeyFile(std::string(5 << 20, '\n')).error(), "has more than 4194304 bytes");
  std::string many;
  for (int i = 0; i < 10'001; i++) many += fmt::format("n{} 0123456789{:06}\n", i, i);
  EXPECT_EQ(KeyFile(many).error(), "line 10001: has more than 10000 keys");
  const TempDir directory;
  EXPECT_EQ(error_of([&] { ApiKeys keys(directory / "missing"); }),
            directory.path() + "/missing: cannot be opened: No such file or directory");
  EXPECT_EQ(error_of([&] { ApiKeys keys(directory.path()); }), directory.path() + ": cannot be read: Is a directory");
}

TEST(ApiKeys, AreReadAgainOnlyIfTheNewFileIsValid) {
  const KeyFile file("alice " + kAlice);
  ApiKeys keys(file.path);
  file.write("bob " + kBob);
  keys.reload();
  EXPECT_FALSE(keys.name_of(kAlice));
  EXPECT_EQ(keys.name_of(kBob), "bob");
  file.write("bob " + kBob + "\nmistake");
  EXPECT_NE(error_of([&] { keys.reload(); }), "");
  EXPECT_EQ(keys.name_of(kBob), "bob");
}

TEST(ApiKeys, CanBeReadAgainWhileTheyAreAskedFor) {
  const KeyFile file("alice " + kAlice);
  ApiKeys keys(file.path);
  std::thread reader([&] {
    for (int i = 0; i < 20; i++) keys.reload();
  });
  for (int i = 0; i < 1000; i++) EXPECT_EQ(keys.name_of(kAlice), "alice");
  reader.join();
}

RequestHead head_with(std::vector<std::pair<std::string, std::string>> fields) {
  RequestHead head;
  head.fields = std::move(fields);
  return head;
}

TEST(ApiKeys, AreTakenFromTheHeadersOfARequest) {
  EXPECT_EQ(presented_key(head_with({{"authorization", "Bearer " + kAlice}})), kAlice);
  EXPECT_EQ(presented_key(head_with({{"authorization", "bEARER   " + kAlice}})), kAlice);
  EXPECT_EQ(presented_key(head_with({{"x-api-key", kAlice}})), kAlice);
  EXPECT_EQ(presented_key(head_with({{"x-api-key", kBob}, {"authorization", "Bearer " + kAlice}})), kAlice);
  EXPECT_EQ(presented_key(head_with({{"authorization", "Basic YTpi"}, {"x-api-key", kBob}})), kBob);
  EXPECT_EQ(presented_key(head_with({{"authorization", "Bearer"}})), "");
  EXPECT_EQ(presented_key(head_with({{"authorization", "Bearer  "}})), "");
  EXPECT_EQ(presented_key(head_with({{"authorization", "Bearer" + kAlice}})), "");
  EXPECT_EQ(presented_key(head_with({{"authorization", ""}})), "");
  EXPECT_EQ(presented_key(head_with({{"cookie", kAlice}})), "");
}

}  // namespace
}  // namespace qkv
