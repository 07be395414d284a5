// Parallel text from files.
#include "text/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/error.h"
#include "tests/support/temporary_file.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;
using testing::error_of;
using testing::TemporaryFile;

TEST(Corpus, PairsTheLinesOfTwoFiles) {
  const TemporaryFile source("en", "one\ntwo\n"), target("de", "eins\nzwei\n");
  const ParallelText text = read_parallel({source.path(), target.path()});
  EXPECT_EQ(text.source, (Lines{"one", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "zwei"}));
}

TEST(Corpus, CutsTheLinesOfOneFileAtTheTab) {
  const TemporaryFile file("tsv", "one\teins\n\tleer\ntwo\t");
  const ParallelText text = read_parallel({file.path()});
  EXPECT_EQ(text.source, (Lines{"one", "", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "leer", ""}));
}

TEST(Corpus, AcceptsWindowsLineEndsAndAMark) {
  const TemporaryFile source("en", "\xEF\xBB\xBFone\r\ntwo\r\n"), target("de", "eins\nzwei");
  const ParallelText text = read_parallel({source.path(), target.path()});
  EXPECT_EQ(text.source, (Lines{"one", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "zwei"}));
}

TEST(Corpus, LowersCaseOnDemand) {
  const TemporaryFile file("tsv", "ÀB\tÖX\n");
  const ParallelText text = read_parallel({file.path()}, true);
  EXPECT_EQ(text.source, Lines{"àb"});
  EXPECT_EQ(text.target, Lines{"öx"});
}

TEST(Corpus, NamesFileAndLineOfAMistake) {
  const TemporaryFile three("3", "a\nb\nc\n"), two("2", "a\nb\n"), latin("latin", "a\nb\n\xE9\n"),
      tabs("tabs", "a\tb\na\tb\tc\n"), none("none", "a\tb\nab\n");
  EXPECT_EQ(error_of([&] {
              read_parallel({three.path(), two.path()});
            }),
            two.path() + ":3: the file ends here, wanted 3 lines as in " + three.path());
  EXPECT_EQ(error_of([&] {
              read_parallel({two.path(), three.path()});
            }),
            two.path() + ":3: the file ends here, wanted 3 lines as in " + three.path());
  EXPECT_EQ(error_of([&] { read_parallel({three.path(), latin.path()}); }).find(latin.path() + ":3: "), 0u);
  EXPECT_EQ(error_of([&] { read_parallel({tabs.path()}); }),
            tabs.path() + ":2: 2 tabs, wanted one (source TAB target)");
  EXPECT_EQ(error_of([&] { read_parallel({none.path()}); }),
            none.path() + ":2: 0 tabs, wanted one (source TAB target)");
  EXPECT_EQ(error_of([&] { read_parallel({"no/such", two.path()}); }).find("no/such: "), 0u);
  EXPECT_EQ(error_of([&] { read_parallel({}); }),
            "parallel text: 0 files, wanted two (source and target) or one (source TAB target)");
}

TEST(Corpus, RefusesAFolder) {
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(error_of([&] { read_parallel({folder}); }).find(folder), 0u);
}

TEST(Corpus, ReadsTatoeba) {
  const std::string path = std::string(QKV_SHARED_DIR) + "/data/tatoeba/dev.tsv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: ../shared not present";
  const ParallelText text = read_parallel({path});
  EXPECT_EQ(text.size(), 1000);
  EXPECT_EQ(text.source[0], "There's no need to panic.");
  EXPECT_EQ(text.target[0], "Es gibt keinen Grund zur Panik.");
}

}  // namespace
}  // namespace qkv
