// The translator of a run directory: text in, text out.
#include "qkv/translator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "core/to_size.h"
#include "io/runs/run.h"
#include "qkv/serving.h"
#include "qkv/system.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::kText;

class TranslatorTest : public ::testing::Test {
 protected:
  Translator make(const std::function<void(testing::Searcher&, const Tokenizer&)>& change = {},
                  const std::string& name = "run", uint64_t seed = 1) {
    return Translator(testing::make_random_run(directory / name, change, seed));
  }

  testing::TempDir directory;
};

TEST_F(TranslatorTest, TokenScoresMatchTheHypotheses) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = options.n_best = 4;
  options.max_length = 12;
  for (const Translation& t : translator.translate(kText, options)) {
    ASSERT_EQ(t.hypotheses.size(), 4u);
    std::vector<Target> tokens;
    for (const Hypothesis& h : t.hypotheses) tokens.emplace_back(h.tokens);
    const auto scored = translator.score(std::vector<std::string>(4, t.source), tokens);
    for (size_t k = 0; k < 4; k++) {
      double sum = 0;
      for (size_t i = 0; i < t.hypotheses[k].token_scores.size(); i++)
        sum += scored[k].hypotheses.front().token_scores[i];
      EXPECT_NEAR(sum, t.hypotheses[k].log_probability, 1e-4);
      EXPECT_EQ(scored[k].hypotheses.front().token_scores.size(), t.hypotheses[k].tokens.size() + 1);
    }
  }
}

TEST_F(TranslatorTest, TextScoresMatchTokenScores) {
  const Translator translator = make();
  TranslateOptions options;
  options.alignment = true;
  options.length_penalty = 0;
  const Hypothesis text = translator.score({kText[0]}, {kText[1]}, options).front().hypotheses.front();
  const Hypothesis tokens = translator.score({kText[0]}, {text.tokens}, options).front().hypotheses.front();
  EXPECT_EQ(text.text, kText[1]);
  EXPECT_EQ(text.token_scores, tokens.token_scores);
  EXPECT_EQ(text.score, text.log_probability);
  EXPECT_EQ(text.alignment.size(), text.tokens.size());
}

TEST_F(TranslatorTest, UnknownWordsAreReplacedByAlignedSourceWords) {
  const Translator translator =
      make([](testing::Searcher& s, const Tokenizer& t) { s.parameter("output.bias")[t.unknown()] = 100; });
  TranslateOptions options;
  options.beam = 2;
  options.max_length = 3;
  options.alignment = options.attention = true;
  const std::string line = "the dög sees THE cät";
  const Translation plain = translator.translate({line}, options).front();
  EXPECT_EQ(plain.hypotheses.front().tokens, std::vector<std::string>(3, "<unk>"));
  options.replace_unknown = true;
  const Translation replaced = translator.translate({line}, options).front();
  // The words of the source, and the word of each of its tokens.
  const std::vector<std::string> words = {"the", "dög", "sees", "THE", "cät"};
  std::vector<size_t> word_of;
  for (const std::string& token : replaced.source_tokens)
    word_of.push_back((word_of.empty() ? 0 : word_of.back() + 1) - (token.starts_with("▁") || word_of.empty() ? 0 : 1));
  std::string wanted;
  for (const Alignment& a : replaced.hypotheses.front().alignment)
    wanted += (wanted.empty() ? "" : " ") + words[word_of[to_size(a.source)]];
  EXPECT_EQ(replaced.text(), wanted);
  options.alignment = options.attention = false;
  EXPECT_EQ(translator.translate({line}, options).front().text(), wanted);
}

TEST_F(TranslatorTest, PartsOfALongLineAreJoined) {
  const Translator translator = make();
  std::string line;
  for (int i = 0; i < 8; i++) line += "the dog sees the cat . ";
  TranslateOptions options;
  options.n_best = 3;
  options.alignment = options.attention = true;
  std::vector<std::string> notes;
  options.on_note = [&](const std::string& note) { notes.push_back(note); };
  const Translation t = translator.translate({line}, options).front();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes.front().starts_with("line 1: a sentence is longer than the model's 30 tokens, split into"))
      << notes.front();
  for (const Hypothesis& h : t.hypotheses) {
    ASSERT_EQ(h.attention.size(), h.tokens.size());
    double sum = 0;
    for (const double x : h.token_scores) sum += x;
    EXPECT_NEAR(h.log_probability, sum, 1e-9);
    EXPECT_NEAR(h.score, sum / static_cast<double>(h.token_scores.size()), 1e-6);
    for (const Alignment& a : h.alignment) EXPECT_GT(h.attention[to_size(a.target)][to_size(a.source)], 0);
    for (const auto& row : h.attention) EXPECT_EQ(row.size(), t.source_tokens.size());
  }
}

TEST_F(TranslatorTest, ConcurrentCallsMatchASingleThread) {
  const Translator translator = make();
  const auto texts = [&] {
    std::string all;
    for (const Translation& t : translator.translate(kText)) all += t.text() + "\n";
    return all;
  };
  const std::string wanted = texts();
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string& slot : found) threads.emplace_back([&] { slot = texts(); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& slot : found) EXPECT_EQ(slot, wanted);
}

TEST_F(TranslatorTest, AsyncAndStreamedResultsMatch) {
  const Translator translator = make();
  std::vector<std::string> lines;
  for (int i = 0; i < 100; i++) lines.push_back(kText[to_size(i) % kText.size()]);
  const std::vector<Translation> wanted = translator.translate(lines);
  std::future<std::vector<Translation>> later = translator.translate_async(lines);
  std::vector<Translation> streamed;
  size_t next = 0;
  TranslateOptions options;
  options.workers = 3;
  translator.translate(
      [&](SourceLine& line, bool) {
        if (next == lines.size()) return Next::end;
        line.text = lines[next++];
        return Next::line;
      },
      [&](Translation&& t) { streamed.push_back(std::move(t)); }, options);
  const std::vector<Translation> async = later.get();
  ASSERT_EQ(streamed.size(), lines.size());
  ASSERT_EQ(async.size(), lines.size());
  for (size_t i = 0; i < lines.size(); i++) {
    EXPECT_EQ(wanted[i].source, lines[i]);
    EXPECT_EQ(async[i].text(), wanted[i].text());
    EXPECT_EQ(streamed[i].text(), wanted[i].text());
  }
}

TEST_F(TranslatorTest, OnTokenReportsTheLine) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = 1;
  options.workers = 2;
  std::vector<std::vector<std::string>> reported(kText.size());
  options.on_token = [&](const TokenReport& report) {
    reported[to_size(report.line)].push_back(report.token);
    return false;
  };
  const std::vector<Translation> found = translator.translate(kText, options);
  for (size_t i = 0; i < found.size(); i++) {
    const Hypothesis& h = found[i].hypotheses.front();
    reported[i].resize(h.tokens.size());  // the end token may follow
    EXPECT_EQ(reported[i], h.tokens);
  }
}

TEST_F(TranslatorTest, EmptyLinesHaveOneEmptyHypothesis) {
  const Translator translator = make();
  const auto found = translator.translate({"", "  ", "a dog"}, {}, {"the", "", "the"});
  ASSERT_EQ(found.size(), 3u);
  for (const size_t i : {0, 1}) {
    ASSERT_EQ(found[i].hypotheses.size(), 1u);
    EXPECT_TRUE(found[i].hypotheses.front().tokens.empty());
  }
  EXPECT_EQ(found[0].text(), "");
  EXPECT_EQ(found[1].text(), "  ");
  EXPECT_TRUE(found[2].text().starts_with("the"));
}

// A text of four sentences, two of them in one line.
const std::vector<std::string> kFour = {"The dog sees the cat.", "He sleeps in the garden.", "a dog reads",
                                        "The old cat sleeps"};
const std::string kFourInText = "  " + kFour[0] + " " + kFour[1] + "\n\n\t" + kFour[2] + " \r\n" + kFour[3] + "\n";

// Expects a hypothesis that joins those of the sentences, given by their places.
void expect_joined(const Translation& whole, const std::vector<Translation>& parts, const std::vector<size_t>& places) {
  Hypothesis wanted;
  std::vector<std::string> texts, source_tokens;
  double score = 0, length = 0;
  for (size_t i = 0; i < parts.size(); i++) {
    const Hypothesis& h = parts[i].hypotheses[places[i]];
    const auto sources = static_cast<int32_t>(source_tokens.size());
    const auto targets = static_cast<int32_t>(wanted.tokens.size());
    for (const Alignment& a : h.alignment) wanted.alignment.push_back({a.source + sources, a.target + targets});
    for (const std::vector<float>& row : h.attention) {
      wanted.attention.emplace_back(sources, 0.0f);
      wanted.attention.back().insert(wanted.attention.back().end(), row.begin(), row.end());
    }
    source_tokens.insert(source_tokens.end(), parts[i].source_tokens.begin(), parts[i].source_tokens.end());
    wanted.tokens.insert(wanted.tokens.end(), h.tokens.begin(), h.tokens.end());
    wanted.token_scores.insert(wanted.token_scores.end(), h.token_scores.begin(), h.token_scores.end());
    wanted.log_probability += h.log_probability;
    score += h.score * static_cast<double>(h.token_scores.size());
    length += static_cast<double>(h.token_scores.size());
    wanted.sentences.push_back({parts[i].source, h.text});
    texts.push_back(h.text);
    if (i + 1 == parts.size() || h.token_scores.size() == h.tokens.size()) continue;
    wanted.tokens.push_back("</s>");
    wanted.attention.emplace_back();  // not reported for a sentence alone, as is its alignment
  }
  wanted.text = "  " + texts[0] + " " + texts[1] + "\n\n\t" + texts[2] + " \r\n" + texts[3] + "\n";
  const auto found = std::ranges::find(whole.hypotheses, wanted.text, &Hypothesis::text);
  ASSERT_TRUE(found != whole.hypotheses.end());
  EXPECT_EQ(whole.source_tokens, source_tokens);
  EXPECT_EQ(found->tokens, wanted.tokens);
  EXPECT_EQ(found->token_scores, wanted.token_scores);
  EXPECT_EQ(found->sentences, wanted.sentences);
  EXPECT_NEAR(found->log_probability, wanted.log_probability, 1e-9);
  EXPECT_NEAR(found->score, score / length, 1e-9);
  ASSERT_EQ(found->alignment.size(), wanted.tokens.size());
  for (const Alignment& a : wanted.alignment) EXPECT_EQ(found->alignment[to_size(a.target)], a);
  ASSERT_EQ(found->attention.size(), wanted.tokens.size());
  for (size_t i = 0; i < wanted.tokens.size(); i++) {
    std::vector<float>& row = wanted.attention[i];
    EXPECT_EQ(found->attention[i].size(), source_tokens.size());
    if (row.empty()) continue;
    row.resize(source_tokens.size());
    EXPECT_EQ(found->attention[i], row);
  }
}

TEST_F(TranslatorTest, SentencesOfATextAreTranslatedOneByOne) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = 4;
  options.n_best = 3;
  options.alignment = options.attention = true;
  const std::vector<Translation> parts = translator.translate(kFour, options);
  const Translation whole = translator.translate({kFourInText}, options).front();
  EXPECT_EQ(whole.source, kFourInText);
  ASSERT_EQ(whole.hypotheses.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(whole.hypotheses, std::greater<>(), &Hypothesis::score));
  for (size_t k = 0; k < 3; k++) expect_joined(whole, parts, {k, k, k, k});
}

TEST_F(TranslatorTest, LinesPrefixesAndAlternativesAreNotSplit) {
  const Translator translator = make();
  const std::string two = kFour[0] + " " + kFour[1];
  const auto tokens_with = [&](const std::function<void(TranslateOptions&)>& change, const std::string& prefix = "") {
    TranslateOptions options;
    change(options);
    return translator.translate({two}, options, {prefix}).front().hypotheses.front().tokens;
  };
  const auto line = tokens_with([](TranslateOptions& o) { o.sentences = Sentences::line; });
  EXPECT_NE(tokens_with([](TranslateOptions&) {}), line);
  const auto prefixed = tokens_with([](TranslateOptions& o) { o.sentences = Sentences::line; }, "the cat");
  EXPECT_EQ(tokens_with([](TranslateOptions&) {}, "the cat"), prefixed);
  const auto alternatives = [](TranslateOptions& o) { o.alternatives = true; };
  EXPECT_EQ(tokens_with(alternatives), tokens_with([&](TranslateOptions& o) {
              alternatives(o);
              o.sentences = Sentences::line;
            }));
  for (const std::string& sentence : kFour) {
    TranslateOptions as_line;
    as_line.sentences = Sentences::line;
    EXPECT_EQ(translator.translate({sentence}).front().text(),
              translator.translate({sentence}, as_line).front().text());
  }
}

TEST_F(TranslatorTest, SentencesDoNotEndAtAbbreviationsOfTheRun) {
  const auto source_tokens = [](const Translator& translator, Sentences sentences) {
    TranslateOptions options;
    options.sentences = sentences;
    return translator.translate({"the Abtlg. Garden sleeps"}, options).front().source_tokens;
  };
  const Translator plain = make();
  EXPECT_NE(source_tokens(plain, Sentences::automatic), source_tokens(plain, Sentences::line));
  testing::spill(directory / "run/abbreviations.txt", "abtlg\n");
  const Translator translator(directory / "run");
  EXPECT_EQ(source_tokens(translator, Sentences::automatic), source_tokens(translator, Sentences::line));
}

TEST_F(TranslatorTest, SamplesOfATextAreThoseOfItsSentences) {
  const Translator translator = make();
  TranslateOptions options;
  options.sampling = options.alignment = options.attention = true;
  options.n_best = 4;
  const std::vector<Translation> parts = translator.translate(kFour, options);
  const Translation whole = translator.translate({kFourInText}, options).front();
  EXPECT_TRUE(std::ranges::is_sorted(whole.hypotheses, std::greater<>(), &Hypothesis::score));
  std::map<int64_t, std::string> streamed;  // by the number of the sample
  TranslationLoop loop(translator);
  TranslationLoop::Events events;
  events.on_token = [&](const TokenReport& report, const std::string& text) {
    streamed[report.hypothesis] = text;
    return false;
  };
  loop.add(loop.prepare({kFourInText}, options), events);
  while (loop.step()) {
  }
  ASSERT_EQ(streamed.size(), 4u);
  std::multiset<std::string> texts, answers;
  for (const auto& [number, text] : streamed) texts.insert(text);
  for (const Hypothesis& h : whole.hypotheses) answers.insert(h.text);
  EXPECT_EQ(texts, answers);
  for (size_t i = 0; i < kFour.size(); i++) {  // each sample of a sentence is in one of the text
    std::multiset<std::string> alone, within;
    for (const Hypothesis& h : parts[i].hypotheses) alone.insert(h.text);
    for (const Hypothesis& h : whole.hypotheses) within.insert(h.sentences[i].text);
    EXPECT_EQ(alone, within);
  }
}

TEST_F(TranslatorTest, ErrorOfACallbackEndsTheTranslation) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = 1;
  options.on_token = [](const TokenReport&) -> bool { throw Error("enough"); };
  for (const int64_t workers : {1, 2}) {
    options.workers = workers;
    options.batch_tokens = 1;
    EXPECT_EQ(error_of([&] { translator.translate({kFourInText, kFour[0], kFourInText}, options); }), "enough");
  }
}

TEST_F(TranslatorTest, TokensOfSentencesAreReportedInOrder) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = 1;
  options.workers = 3;
  options.batch_tokens = 1;  // a sentence a batch
  std::vector<std::string> texts;
  for (size_t i = 0; i < 6; i++)
    texts.push_back(i % 2 == 0 ? kFourInText : kFour[2] + "\n" + kFour[0] + " " + kFour[3]);
  std::vector<std::vector<std::string>> reported(texts.size());
  std::vector<int> ends(texts.size());
  options.on_token = [&](const TokenReport& report) {
    const size_t line = to_size(report.line);
    EXPECT_EQ(ends[line], 0);
    reported[line].push_back(report.token);
    ends[line] += report.last ? 1 : 0;
    return false;
  };
  const std::vector<Translation> found = translator.translate(texts, options);
  for (size_t i = 0; i < texts.size(); i++) {
    const std::vector<std::string>& tokens = found[i].hypotheses.front().tokens;
    EXPECT_EQ(ends[i], 1);
    reported[i].resize(tokens.size());  // the end token may follow
    EXPECT_EQ(reported[i], tokens);
  }
  EXPECT_EQ(found[0].text(), translator
                                 .translate({kFourInText},
                                            [&] {
                                              TranslateOptions plain = options;
                                              plain.on_token = {};
                                              return plain;
                                            }())
                                 .front()
                                 .text());
}

TEST_F(TranslatorTest, EndedHypothesisEndsItsText) {
  const Translator translator = make();
  TranslateOptions options;
  options.beam = 1;
  const size_t first = translator.translate({kFour[0]}, options).front().hypotheses.front().tokens.size();
  std::vector<std::string> reported;
  options.on_token = [&](const TokenReport& report) {
    reported.push_back(report.token);
    return reported.size() == first + 2;
  };
  const Translation found = translator.translate({kFourInText}, options).front();
  EXPECT_EQ(found.hypotheses.front().tokens, reported);
  EXPECT_EQ(reported.size(), first + 2);
  EXPECT_FALSE(found.text().ends_with("\n"));
}

TEST_F(TranslatorTest, EnsembleDiffersFromEachOfItsRuns) {
  const Translator first = make({}, "first", 1), second = make({}, "second", 2);
  const Translator both(directory / "first", {directory / "second"});
  const std::vector<std::string> tokens = {"▁the", "▁cat"};
  const auto log_p = [&](const Translator& t) {
    return t.score({kText[0]}, {tokens}).front().hypotheses.front().token_scores;
  };
  for (size_t i = 0; i <= tokens.size(); i++)
    EXPECT_NEAR(std::exp(log_p(both)[i]), (std::exp(log_p(first)[i]) + std::exp(log_p(second)[i])) / 2, 1e-6);
}

TEST_F(TranslatorTest, LogSoftmaxOfLogitsIsTheScore) {
  const Translator first = make({}, "first", 1), second = make({}, "second", 2);
  const Translator both(directory / "first", {directory / "second"});
  const std::vector<std::vector<std::string>> targets = {{"▁the", "▁cat", "▁the"}, {}, {"▁cat"}};
  const std::vector<Target> given(targets.begin(), targets.end());
  const std::vector<std::string> sources(kText.begin(), kText.begin() + 3);
  TranslateOptions options;
  options.batch_tokens = 1;  // a pair a batch
  for (const Translator* t : {&first, &both}) {
    const auto scored = t->score(sources, given);
    const TokenRows rows = t->logits(sources, given);
    EXPECT_EQ(rows.offsets, (std::vector<int64_t>{0, 4, 5, 7}));
    EXPECT_EQ(t->logits(sources, given, options).values, rows.values);
    const auto log_p = [&](int64_t n, int64_t id) {
      const float* row = rows.values.data() + n * rows.width;
      double sum = 0;
      for (int64_t i = 0; i < rows.width; i++) sum += std::exp(static_cast<double>(row[i]));
      return static_cast<double>(row[id]) - std::log(sum);
    };
    const TranslatorRun run = load_run<TranslatorRun>(directory / "first");
    const Tokenizer& vocabulary = run.tokenizers.target;
    for (size_t s = 0; s < 3; s++)
      for (size_t i = 0; i <= targets[s].size(); i++) {
        int32_t id = run.tokens.end;
        for (int32_t other = 0; i < targets[s].size() && other < vocabulary.size(); other++)
          if (vocabulary.piece(other) == targets[s][i]) id = other;
        EXPECT_NEAR(log_p(rows.offsets[s] + static_cast<int64_t>(i), id), scored[s].hypotheses.front().token_scores[i],
                    1e-5);
      }
  }
  EXPECT_EQ(first.logits(sources, {"the cat the", "", "cat"}).values, first.logits(sources, given).values);
}

TEST_F(TranslatorTest, EncodeReturnsARowForEachSourceToken) {
  const Translator translator = make();
  const TokenRows rows = translator.encode(kText);
  const std::vector<Translation> translations = translator.translate(kText);
  EXPECT_EQ(rows.offsets.size(), kText.size() + 1);
  for (size_t i = 0; i < kText.size(); i++) {
    EXPECT_EQ(rows.offsets[i + 1] - rows.offsets[i], std::ssize(translations[i].source_tokens));
    const TokenRows alone = translator.encode({kText[i]});
    EXPECT_TRUE(
        std::equal(alone.values.begin(), alone.values.end(), rows.values.begin() + rows.offsets[i] * rows.width));
  }
  EXPECT_TRUE(translator.encode({}).values.empty());
  EXPECT_EQ(error_of([&] { translator.encode({"a dog", " "}); }), "text 2 is empty");
}

TEST_F(TranslatorTest, ErrorsNameTheLineOrTheOption) {
  const Translator translator = make();
  const auto error_with = [&](auto&& change) {
    TranslateOptions options;
    change(options);
    return error_of([&] { translator.translate({"a dog"}, options); });
  };
  EXPECT_EQ(error_of([&] { translator.translate({"a dog", "\xff"}); }), "line 2: byte 1 is not valid UTF-8");
  EXPECT_EQ(error_of([&] {
              translator.translate({"a", "b"}, {}, {"x"});
            }),
            "prefixes must be one for each of 2 lines (are 1)");
  EXPECT_EQ(error_with([](TranslateOptions& o) { o.workers = -1; }), "workers must be between 0 and 1024 (is -1)");
  EXPECT_EQ(error_with([](TranslateOptions& o) { o.n_best = 9; }),
            "n_best must be at most beam, 5, unless sampling (is 9)");
  EXPECT_EQ(error_with([](TranslateOptions& o) { o.attention_layer = 3; }),
            "attention: layer 3 does not exist (the decoder has 2 layers)");
  EXPECT_EQ(error_with([](TranslateOptions& o) {
              o.alternatives = true;
              o.beam = 1;
              o.on_token = [](const TokenReport&) { return false; };
            }),
            "on_token cannot be combined with alternatives");
  EXPECT_EQ(error_of([&] { translator.score({"a dog"}, {}); }), "targets must be one for each of 1 sources (are 0)");
  EXPECT_EQ(error_of([&] { translator.score({" "}, {"x"}); }), "source 1 is empty");
  EXPECT_EQ(error_of([&] { translator.score({"a dog"}, {std::vector<std::string>{"nope"}}); }),
            "token \"nope\" is not in the target vocabulary");
}

}  // namespace
}  // namespace qkv
