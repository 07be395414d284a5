// Translation step by step: a text gets the bytes of Translator::translate, whatever comes and goes next to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <thread>

#include "core/fail.h"
#include "core/random.h"
#include "core/to_size.h"
#include "decode/engine/client_turns.h"
#include "qkv/serving.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::kText;
using testing::with_threads;

// Everything that a translation holds, with all digits.
std::string bytes_of(const Translation& t) {
  std::string all = t.source + "|";
  const auto add = [&](const auto& x) { all.append(reinterpret_cast<const char*>(&x), sizeof(x)); };
  for (const std::string& token : t.source_tokens) all += token + " ";
  for (const Hypothesis& h : t.hypotheses) {
    all += "\n" + h.text + "|";
    for (const std::string& token : h.tokens) all += token + " ";
    add(h.score), add(h.log_probability);
    for (const double score : h.token_scores) add(score);
    for (const WordScore& word : h.words) all += word.word, add(word.log_probability);
    for (const Alignment& a : h.alignment) add(a);
    for (const auto& row : h.attention)
      for (const float weight : row) add(weight);
  }
  return all;
}

struct Text {
  SourceLine line;
  TranslateOptions options;
};

// Texts with all kinds of options.
std::vector<Text> texts() {
  std::vector<TranslateOptions> options(12);
  for (TranslateOptions& o : options) o.max_length = 14;
  options[0].beam = 1;
  options[1].beam = options[1].n_best = 3;
  options[2].min_length = 6;
  options[3].beam = 1, options[3].sampling = true, options[3].n_best = 2;
  options[4].repetition_penalty = 1.5;
  options[5].no_repeat_ngram = 2, options[5].beam = 2;
  options[6].alternatives = true, options[6].n_best = 3, options[6].beam = 2;
  options[7].coverage_penalty = 0.4, options[7].n_best = 2;
  options[8].alignment = options[8].attention = true;
  options[9].length_penalty = 0, options[9].beam = 7;
  options[10].max_length = 0, options[10].replace_unknown = true;
  options[11].beam = 1, options[11].min_length = 20, options[11].max_length = 25;
  std::string long_line;
  for (int i = 0; i < 3; i++)
    for (const std::string& line : kText) long_line += line + " . ";
  std::vector<Text> texts;
  for (size_t i = 0; i < 3 * options.size(); i++)
    texts.push_back({{i % 7 == 3 ? long_line : kText[i % 5]}, options[i % options.size()]});
  texts[4].line.prefix = texts[13].line.prefix = "the dog";
  texts[6].line.prefix = "a";
  texts[20].line.text = "";
  return texts;
}

class TranslationLoopTest : public ::testing::Test {
 protected:
  TranslationLoopTest() : translator_(testing::make_random_run(directory_ / "run")) {
    for (const Text& text : texts_) {
      const std::vector<std::string> prefixes(text.line.prefix.empty() ? 0 : 1, text.line.prefix);
      alone_.push_back(with_threads(
          1, [&] { return bytes_of(translator_.translate({text.line.text}, text.options, prefixes).front()); }));
    }
  }

  static bool may_stream(const TranslateOptions& o) { return o.beam == 1 && !o.alternatives; }

  testing::TempDir directory_;
  Translator translator_;
  const std::vector<Text> texts_ = texts();
  std::vector<std::string> alone_;
};

// Adds the texts at random steps, pauses some for a while, and adds others that are cancelled.
void run_with_company(const Translator& translator, const std::vector<Text>& texts, const LoopLimits& limits,
                      uint64_t seed, bool stream, std::vector<std::string>& results) {
  TranslationLoop loop(translator, limits);
  Random random(seed, Stream::test);
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  random.shuffle(order);
  std::vector<uint64_t> leaving, paused;
  size_t next = 0, done = 0;
  results.assign(texts.size(), "");
  for (int64_t step = 0; done < texts.size(); step++) {
    ASSERT_LT(step, 5000);
    for (uint64_t joining = random.below(4); joining-- > 0 && next < order.size(); next++) {
      const size_t i = order[next];
      TranslationLoop::Events events;
      if (stream && texts[i].options.beam == 1 && !texts[i].options.alternatives)
        events.on_token = [](const TokenReport&, const std::string&) { return false; };
      events.on_done = [&, i](Translation&& t) {
        EXPECT_EQ(results[i], "");
        results[i] = bytes_of(t);
        done++;
      };
      events.on_error = [&](std::exception_ptr error) { std::rethrow_exception(error); };
      const uint64_t id = loop.add(loop.prepare(texts[i].line, texts[i].options), std::move(events));
      if (random.below(3) == 0) paused.push_back(id), loop.pause(id, true);
      const Text& other = texts[random.below(texts.size())];
      TranslationLoop::Events none;
      none.on_done = [&](Translation&&) {};
      leaving.push_back(loop.add(loop.prepare(other.line, other.options), none));
    }
    if (!leaving.empty() && random.below(2) == 0) loop.cancel(leaving.back()), leaving.pop_back();
    if (!paused.empty() && random.below(4) == 0) loop.pause(paused.back(), false), paused.pop_back();
    loop.step();
  }
}

TEST_F(TranslationLoopTest, TextGetsTheSameBytesWhateverComesAndGoes) {
  for (const int threads : {1, 2, 3})
    for (const int64_t rows : {8, 256})
      for (const bool stream : {false, true}) {
        std::vector<std::string> found;
        const auto seed = static_cast<uint64_t>(threads + 10 * rows + stream);
        with_threads(threads, [&] {
          run_with_company(translator_, texts_, {.rows = rows}, seed, stream, found);
          return 0;
        });
        for (size_t i = 0; i < texts_.size(); i++)
          EXPECT_TRUE(found[i] == alone_[i]) << "text " << i << ", rows " << rows << ", threads " << threads;
      }
}

TEST_F(TranslationLoopTest, LittleRoomForKeysAndValuesChangesNoResult) {
  int64_t bytes = 0;
  {
    const TranslationLoop loop(translator_);
    for (const Text& text : texts_) bytes = std::max(bytes, loop.prepare(text.line, text.options).bytes);
  }
  std::vector<std::string> found;
  run_with_company(translator_, texts_, {.cache_bytes = bytes}, 5, false, found);
  for (size_t i = 0; i < texts_.size(); i++) EXPECT_TRUE(found[i] == alone_[i]) << "text " << i;
  const TranslationLoop small(translator_, {.cache_bytes = bytes - 1});
  int refused = 0;
  for (const Text& text : texts_) try {
      small.prepare(text.line, text.options);
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), fmt::format("text: may need {} bytes of keys and values, more than cache_bytes ({})",
                                          bytes, bytes - 1));
      refused++;
    }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 10);
}

TEST_F(TranslationLoopTest, StreamsTheSentencesOfATextInOrder) {
  const Text& text = texts_[24];  // greedy
  ASSERT_TRUE(may_stream(text.options));
  const SourceLine line = {" " + texts_[3].line.text + "\n\nThe dog sees the cat. He sleeps.\n"};
  ASSERT_GT(line.text.size(), 200u);
  std::vector<std::string> tokens;
  int ends = 0;
  Translation result;
  TranslationLoop loop(translator_);
  const TranslationLoop::Prepared prepared = loop.prepare(line, text.options);
  EXPECT_EQ(prepared.rows, 1);
  EXPECT_GT(prepared.source_tokens, 30);
  EXPECT_GT(prepared.cost, prepared.source_tokens);
  EXPECT_GT(prepared.bytes, 0);
  TranslationLoop::Events events;
  std::string written;
  events.on_token = [&](const TokenReport& t, const std::string& so_far) {
    EXPECT_TRUE(t.last || so_far.starts_with(written));
    EXPECT_EQ(ends, 0);
    ends += t.last ? 1 : 0;
    written = so_far;
    if (!t.last || t.token != "</s>") tokens.push_back(t.token);
    return false;
  };
  events.on_done = [&](Translation&& t) { result = std::move(t); };
  loop.add(loop.prepare(line, text.options), events);
  while (loop.step()) {
  }
  ASSERT_EQ(result.hypotheses.size(), 1u);
  EXPECT_EQ(tokens, result.hypotheses.front().tokens);
  EXPECT_EQ(written, result.text());
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(written.starts_with(" ") && written.ends_with("\n"));
  EXPECT_NE(written.find("\n\n"), std::string::npos);
}

TEST_F(TranslationLoopTest, CancelledTextsGetNoEvents) {
  TranslationLoop loop(translator_, {.rows = 5});
  int events = 0;
  std::vector<uint64_t> ids;
  TranslationLoop::Events count;
  count.on_done = [&](Translation&&) { events++; };
  count.on_error = [&](std::exception_ptr) { events++; };
  for (int i = 0; i < 4; i++) ids.push_back(loop.add(loop.prepare({kText[0]}), count));
  EXPECT_TRUE(loop.step());
  for (const uint64_t id : ids) loop.cancel(id);
  loop.cancel(99);
  while (loop.step()) {
  }
  EXPECT_EQ(events, 0);
  loop.add(loop.prepare({kText[0]}), count);
  while (loop.step()) {
  }
  EXPECT_EQ(events, 1);
}

TEST_F(TranslationLoopTest, PausedTextWaitsUntilItMayContinue) {
  TranslationLoop loop(translator_);
  int done = 0;
  TranslationLoop::Events events;
  events.on_done = [&](Translation&&) { done++; };
  const uint64_t id = loop.add(loop.prepare({kText[0]}), events);
  EXPECT_TRUE(loop.step());
  loop.pause(id, true);
  EXPECT_TRUE(loop.step());
  EXPECT_FALSE(loop.step());
  EXPECT_EQ(done, 0);
  loop.pause(id, false);
  while (loop.step()) {
  }
  EXPECT_EQ(done, 1);
}

TEST_F(TranslationLoopTest, OtherThreadsAddAndCancelTexts) {
  TranslationLoop loop(translator_, {.rows = 20});
  std::atomic<int> done = 0, adding = 3;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (size_t i = 0; i < 15; i++) {
        TranslationLoop::Events events;
        events.on_done = [&, i](Translation&& found) {
          EXPECT_EQ(found.source, kText[i % 5]);
          done++;
        };
        loop.add(loop.prepare({kText[i % 5]}), events);
        loop.cancel(loop.add(loop.prepare({kText[i % 5]}), {}));
      }
      adding--;
    });
  for (bool more = true; more;) {
    const bool others_add = adding > 0;  // before the step, which then sees all that they have added
    more = loop.step() || others_add;
  }
  EXPECT_EQ(done, 45);
}

TEST_F(TranslationLoopTest, CallbackMayEndItsTextAndAddAnother) {
  TranslationLoop loop(translator_);
  std::string error, text;
  TranslateOptions greedy;
  greedy.beam = 1;
  TranslationLoop::Events next, first;
  next.on_done = [&](Translation&& t) { text = t.source; };
  first.on_token = [](const TokenReport&, const std::string&) -> bool { throw Error("enough"); };
  first.on_done = [&](Translation&&) { error = "none"; };
  first.on_error = [&](std::exception_ptr e) {
    error = error_of([&] { std::rethrow_exception(e); });
    loop.add(loop.prepare({kText[1]}), next);
  };
  loop.add(loop.prepare({kText[0]}, greedy), first);
  while (loop.step()) {
  }
  EXPECT_EQ(error, "enough");
  EXPECT_EQ(text, kText[1]);
}

TEST_F(TranslationLoopTest, ClientsStartTextsInTurn) {
  TranslationLoop loop(translator_, {.rows = 5});
  std::vector<std::string> started;
  int64_t cost = 0;
  const auto add = [&](const std::string& client, int texts) {
    for (int i = 0; i < texts; i++) {
      TranslationLoop::Prepared text = loop.prepare({kText[0]});
      cost = text.cost;
      text.client = client;
      TranslationLoop::Events events;
      events.on_start = [&started, client] { started.push_back(client); };
      loop.add(std::move(text), events);
    }
  };
  add("many", 100);
  loop.step();  // the current turn is the first
  add("few", 3);
  while (loop.step()) {
  }
  ASSERT_EQ(started.size(), 103u);
  const auto last = std::ranges::find(started.rbegin(), started.rend(), "few").base() - started.begin();
  EXPECT_EQ(last, (ClientTurns::kQuantum + cost - 1) / cost + 3);  // after the first turn of the other
}

TEST_F(TranslationLoopTest, ErrorsNameTheOptionOrTheLimit) {
  TranslationLoop loop(translator_, {.rows = 4});
  TranslateOptions options;
  EXPECT_EQ(error_of([&] { loop.prepare({"a"}, options); }), "text: needs 5 rows, more than the limit of 4");
  options.beam = 3;
  TranslationLoop::Events events;
  events.on_token = [](const TokenReport&, const std::string&) { return false; };
  EXPECT_EQ(error_of([&] { loop.add(loop.prepare({"a"}, options), events); }),
            "on_token requires beam = 1 or sampling (beam is 3)");
  EXPECT_EQ(error_of([&] { loop.prepare({"\xff"}, options); }), "byte 1 is not valid UTF-8");
  options.n_best = 4;
  EXPECT_EQ(error_of([&] { loop.prepare({"a"}, options); }), "n_best must be at most beam, 3, unless sampling (is 4)");
  EXPECT_EQ(error_of([&] { TranslationLoop(translator_, {.rows = 0}); }), "rows must be at least 1 (is 0)");
  EXPECT_EQ(error_of([&] { TranslationLoop(translator_, {.cache_bytes = 0}); }),
            "cache_bytes must be at least 1 (is 0)");
}

TEST(TranslationLoop, ModelThatGivesNoNumberFailsOneText) {
  const std::string good = "a dog reads", bad = "the old cat sleeps";
  testing::TempDir directory;
  const Translator translator(
      testing::make_random_run(directory / "run", [&](testing::Searcher& s, const Tokenizer& t) {
        const std::vector<int32_t> read = t.encode(good);
        for (const int32_t id : t.encode(bad)) {
          if (std::ranges::find(read, id) != read.end()) continue;
          const int64_t d = s.model.config().d_model;
          std::fill_n(s.parameter("embedding.weight") + id * d, d, 1e25f);  // attention scores overflow
          s.parameter("output.bias")[id] = -1e38f;                          // never generated
        }
      }));
  TranslationLoop loop(translator);
  std::map<std::string, std::string> found;
  for (const std::string& line : {good, bad}) {
    TranslationLoop::Events events;
    events.on_done = [&, line](Translation&&) { found[line] = "done"; };
    events.on_error = [&, line](std::exception_ptr e) { found[line] = error_of([&] { std::rethrow_exception(e); }); };
    loop.add(loop.prepare({line}), events);
  }
  while (loop.step()) {
  }
  EXPECT_EQ(found[good], "done");
  EXPECT_EQ(found[bad], "the model gives no finite score");
}

}  // namespace
}  // namespace qkv
