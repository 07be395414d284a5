// The tables of the logit lens and of activation patching.
#include <gtest/gtest.h>

#include "qkv/logit_lens.h"
#include "qkv/patching.h"

namespace qkv {
namespace {

TEST(LensTable, HasARowForEachLayerAndAColumnForEachToken) {
  LogitLens lens;
  lens.read = {"▁the", "▁dog"};
  lens.answers = {"▁dog", "▁barks"};
  lens.layers = {{{"▁a", 0.5, 3, 0.125}, {"▁b", 0.25, 2, 0.0625}}, {{"▁dog", 0.75, 1, 0.75}, {"▁barks", 1, 1, 1}}};
  EXPECT_EQ(lens_to_text(lens),
            "The most probable next token after each layer, with its probability\n"
            "\n"
            "read        ▁the             ▁dog\n"
            "embeddings  0.50 ▁a          0.25 ▁b\n"
            "layer 1     0.75 ▁dog        1.00 ▁barks\n"
            "\n"
            "The probability and the rank of the last layer's token\n"
            "\n"
            "read        ▁the             ▁dog\n"
            "embeddings  0.12 rank 3      0.06 rank 2\n"
            "layer 1     0.75 rank 1      1.00 rank 1\n");
  EXPECT_EQ(lens_to_json(lens),
            R"({"source":"","target":"","read":["▁the","▁dog"],"answers":["▁dog","▁barks"],"layers":[[{"token":"▁a",)"
            R"("probability":0.5,"answer_rank":3,"answer_probability":0.125},{"token":"▁b","probability":0.25,)"
            R"("answer_rank":2,"answer_probability":0.0625}],[{"token":"▁dog","probability":0.75,"answer_rank":1,)"
            R"("answer_probability":0.75},{"token":"▁barks","probability":1.0,"answer_rank":1,)"
            R"("answer_probability":1.0}]]})");
}

TEST(LensTable, LinesHaveAtMost100ColumnsInBands) {
  LogitLens lens;
  lens.read.assign(12, std::string(40, 'x'));
  lens.answers = lens.read;
  lens.layers.assign(1, std::vector<LensPrediction>(12, {std::string(40, 'y'), 0.5, 1, 0.5}));
  const std::string text = lens_to_text(lens);
  size_t read = 0;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    EXPECT_LE(line.size() - 2 * static_cast<size_t>(std::count(line.begin(), line.end(), '\xe2')), 100u) << line;
    read += line.starts_with("read");
  }
  EXPECT_EQ(read, 6u);  // three bands of each table
}

TEST(PatchingTable, ShowsSharesInPercent) {
  Patching p;
  p.clean = {"a", "b"};
  p.corrupted = {"a", "c"};
  p.answer = "x";
  p.wrong = "y";
  p.clean_score = 2;
  p.corrupted_score = -2;
  p.layers = p.columns = 2;
  p.scores = {-2, 0, -2, 2};
  p.recovered = {0, 0.5, -0.001, 1};
  EXPECT_EQ(patching_to_text(p),
            "logit(x) - logit(y): clean 2.000, corrupted -2.000\n"
            "Recovered by the clean residual of each decoder layer at one token, in percent\n"
            "\n"
            "clean       a       b\n"
            "corrupted   a       c\n"
            "embeddings  0       50\n"
            "layer 1     0       100\n");
  EXPECT_EQ(
      patching_to_json(p),
      R"({"part":"residual","stack":"decoder","clean":["a","b"],"corrupted":["a","c"],"answer":"x","wrong":"y",)"
      R"("clean_score":2.0,"corrupted_score":-2.0,"scores":[[-2.0,0.0],[-2.0,2.0]],"recovered":[[0.0,0.5],[-0.001,1.0]]})");
  p.part = PatchedPart::head;
  p.wrong = "";
  EXPECT_EQ(patching_to_text(p),
            "log p(x): clean 2.000, corrupted -2.000\n"
            "Recovered by the clean head of each decoder layer at all tokens, in percent\n"
            "\n"
            "head        1       2\n"
            "layer 1     0       50\n"
            "layer 2     0       100\n");
}

}  // namespace
}  // namespace qkv
