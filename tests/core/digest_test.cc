#include "core/digest.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

// The examples of FIPS 180-4.
TEST(Digest, Sha256GivesTheSumsOfTheStandard) {
  Sha256 empty, abc, two_blocks;
  EXPECT_EQ(empty.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  abc.add("abc");
  EXPECT_EQ(abc.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  two_blocks.add("abcdbcdecdefdefgefghfghighij");
  two_blocks.add("");
  two_blocks.add("hijkijkljklmklmnlmnomnopnopq");
  EXPECT_EQ(two_blocks.hex(), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Digest, Sha1GivesTheSumsOfTheStandard) {
  Digest empty(Digest::Algorithm::sha1), abc(Digest::Algorithm::sha1);
  EXPECT_EQ(empty.hex(), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  abc.add("a");
  abc.add("bc");
  EXPECT_EQ(abc.hex(), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

}  // namespace
}  // namespace qkv
