// Parallel text from files.
#include "text/parallel_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;
using testing::error_of;
using testing::TempFile;

TEST(ReadCorpus, PairsTheLinesOfTwoFiles) {
  const TempFile source("en", "one\ntwo\n"), target("de", "eins\nzwei\n");
  const ParallelText text = read_parallel({source.path(), target.path()});
  EXPECT_EQ(text.source, (Lines{"one", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "zwei"}));
}

TEST(ReadCorpus, CutsTheLinesOfOneFileAtTheTab) {
  const TempFile file("tsv", "one\teins\n\tleer\ntwo\t");
  const ParallelText text = read_parallel({file.path()});
  EXPECT_EQ(text.source, (Lines{"one", "", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "leer", ""}));
}

TEST(ReadCorpus, AcceptsWindowsLineEndsAndAMark) {
  const TempFile source("en", "\xEF\xBB\xBFone\r\ntwo\r\n"), target("de", "eins\nzwei");
  const ParallelText text = read_parallel({source.path(), target.path()});
  EXPECT_EQ(text.source, (Lines{"one", "two"}));
  EXPECT_EQ(text.target, (Lines{"eins", "zwei"}));
}

TEST(ReadCorpus, LowersCaseOnDemand) {
  const TempFile file("tsv", "ÀB\tÖX\n");
  const ParallelText text = read_parallel({file.path()}, true);
  EXPECT_EQ(text.source, Lines{"àb"});
  EXPECT_EQ(text.target, Lines{"öx"});
}

TEST(ReadCorpus, NamesFileAndLineOfAMistake) {
  const TempFile three("3", "a\nb\nc\n"), two("2", "a\nb\n"), latin("latin", "a\nb\n\xE9\n"),
      tabs("tabs", "a\tb\na\tb\tc\n"), none("none", "a\tb\nab\n");
  EXPECT_EQ(error_of([&] {
              read_parallel({three.path(), two.path()});
            }),
            two.path() + ":3: the file ends here, expected 3 lines as in " + three.path());
  EXPECT_EQ(error_of([&] {
              read_parallel({two.path(), three.path()});
            }),
            two.path() + ":3: the file ends here, expected 3 lines as in " + three.path());
  EXPECT_EQ(error_of([&] { read_parallel({three.path(), latin.path()}); }).find(latin.path() + ":3: "), 0u);
  EXPECT_EQ(error_of([&] { read_parallel({tabs.path()}); }),
            tabs.path() + ":2: 2 tabs, expected one (source TAB target)");
  EXPECT_EQ(error_of([&] { read_parallel({none.path()}); }),
            none.path() + ":2: 0 tabs, expected one (source TAB target)");
  EXPECT_EQ(error_of([&] { read_parallel({"no/such", two.path()}); }).find("no/such: "), 0u);
  EXPECT_EQ(error_of([&] { read_parallel({}); }),
            "parallel text: 0 files, expected two (source and target) or one (source TAB target)");
}

TEST(ReadCorpus, ReadsPairsByChunks) {
  const TempFile source("en", "one\ntwo\nTHREE\n"), target("de", "eins\nzwei\ndrei"),
      both("tsv", "one\teins\ntwo\tzwei\nTHREE\tdrei");
  for (const auto& files : {Lines{source.path(), target.path()}, Lines{both.path()}}) {
    const ParallelCorpus corpus(files, true, 2);
    EXPECT_EQ(corpus.size(), 3);
    EXPECT_EQ(corpus.chunks(), 2);
    EXPECT_EQ(corpus.read(1).source, Lines{"three"});
    EXPECT_EQ(corpus.read(1).target, Lines{"drei"});
    EXPECT_EQ(corpus.read(0).source, (Lines{"one", "two"}));
    EXPECT_EQ(corpus.read(0).target, (Lines{"eins", "zwei"}));
  }
}

TEST(ReadCorpus, ReadsTheSourceInItsOwnCase) {
  const TempFile source("en", "One\ntwo\nTHREE\n"), target("de", "Eins\nzwei\nDREI\n"),
      both("tsv", "One\tEins\ntwo\tzwei\nTHREE\tDREI\n");
  for (const auto& files : {Lines{source.path(), target.path()}, Lines{both.path()}}) {
    const ParallelCorpus corpus(files, true, 2);
    EXPECT_EQ(corpus.read_source(0), (Lines{"One", "two"}));
    EXPECT_EQ(corpus.read_source(1), Lines{"THREE"});
  }
}

TEST(ReadCorpus, SamplesWholeChunksOfALongText) {
  std::string text;
  for (int i = 0; i < 1000; i++) text += std::to_string(i) + "\t" + std::to_string(i) + "\n";
  const TempFile file("tsv", text);
  const ParallelCorpus corpus({file.path()}, false, 10);
  EXPECT_EQ(corpus.sample(1000).size(), 1000);
  EXPECT_EQ(corpus.sample(1000).source, read_parallel({file.path()}).source);
  for (const int64_t most : {1, 10, 99, 500, 999}) {
    const ParallelText sample = corpus.sample(most);
    EXPECT_EQ(sample.size(), std::max<int64_t>(10, most / 10 * 10));
    EXPECT_EQ(sample.source, sample.target);
    EXPECT_EQ(sample.source, corpus.sample(most).source);
    Lines source;
    for (const int64_t chunk : corpus.sampled_chunks(most))
      for (const std::string& line : corpus.read_source(chunk)) source.push_back(line);
    EXPECT_EQ(source, sample.source);
    int last = -1;
    for (const std::string& line : sample.source) {
      const int number = std::stoi(line);
      EXPECT_TRUE(number % 10 == 0 ? number > last : number == last + 1);
      last = number;
    }
  }
}

TEST(ReadCorpus, DistinguishesTexts) {
  const TempFile a("a", "one\ntwo\n"), b("b", "eins\nzwei\n"), c("c", "one\ntwo\n");
  const auto fingerprint = [](const Lines& files) { return ParallelCorpus(files).fingerprint(); };
  EXPECT_EQ(fingerprint({a.path(), b.path()}), fingerprint({c.path(), b.path()}));
  EXPECT_NE(fingerprint({a.path(), b.path()}), fingerprint({b.path(), a.path()}));
  EXPECT_NE(fingerprint({a.path(), b.path()}), fingerprint({a.path(), a.path()}));
}

TEST(ReadCorpus, RefusesAFolder) {
  const std::string folder = ::testing::TempDir();
  EXPECT_EQ(error_of([&] { read_parallel({folder}); }).find(folder), 0u);
}

TEST(ReadCorpus, ReadsTatoeba) {
  const std::string path = std::string(QKV_SHARED_DIR) + "/data/tatoeba/dev.tsv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: ../shared not present";
  const ParallelText text = read_parallel({path});
  EXPECT_EQ(text.size(), 1000);
  EXPECT_EQ(text.source[0], "There's no need to panic.");
  EXPECT_EQ(text.target[0], "Es gibt keinen Grund zur Panik.");
}

}  // namespace
}  // namespace qkv
