// The roles of attention heads: scores of every head on texts or on a log, the effect of removing heads and sublayers, the
// importance of heads by their gradients, and smaller runs without the least important heads. docs/heads.md has the
// formulas.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/field.h"
#include "qkv/runs.h"

namespace [[gnu::visibility("default")]] qkv {

// The parts of a model that are removed, one at a time:
//   none       nothing is removed
//   heads      each head
//   attention  all heads of each attention, whose output bias stays
//   sublayers  what each sublayer adds to its input: self-attention, cross-attention, feed-forward network
enum class Ablation { none, heads, attention, sublayers };
constexpr std::array<std::string_view, 4> names_of(Ablation) { return {"none", "heads", "attention", "sublayers"}; }

// The numbers in place of the output of a removed part: zeros, or its mean over all tokens of the data.
enum class Replacement { zero, mean };
constexpr std::array<std::string_view, 2> names_of(Replacement) { return {"zero", "mean"}; }

struct HeadsOptions {
  std::string data = "";       // file of texts, one per line; "": the log in the run of a recommender
  std::string target = "";     // file of their translations; "": the model's own translations
  std::string alignment = "";  // file of word alignments
  std::string conllu = "";     // file of syntax trees
  std::string target_conllu = "";  // of the translations
  std::string source_language = "", target_language = "";
  int64_t lines = 1000;
  Ablation ablate = Ablation::none;
  Replacement replace_by = Replacement::zero;
  bool importance = false;
  bool bleu = false;
  int64_t examples = 0;
  int64_t resamples = 1000;
  int64_t seed = 1;
  int64_t batch_tokens = 4096;
  int64_t show_line = 0;  // of the data, from 1; of a log: the number of the user
};

template <class Visitor>
void visit_fields(HeadsOptions& o, Visitor&& visit) {
  visit("target", o.target,
        {"File of translations of the data, one per line; empty: the model's own translations", "data", {}, kCommon});
  visit("alignment", o.alignment,
        {"File of word alignments of data and target: pairs of words i-j per line, counted from 0 (Pharaoh format)",
         "data", {}, kCommon});
  visit("conllu", o.conllu, {"CoNLL-U file with one sentence for each line of the data", "data", {}, kCommon});
  visit("target_conllu", o.target_conllu,
        {"CoNLL-U file with one sentence for each line of the target", "data", {}, kCommon});
  visit("source_language", o.source_language,
        {"Language of the source, for a model with several: its code, such as en", "data"});
  visit("target_language", o.target_language,
        {"Language of the translation, for a model with several: its code, such as de", "data"});
  visit("lines", o.lines, {"Maximum number of lines that are read, or of users of a log; 0 means all", "data",
                           at_least(0), kCommon});
  visit("ablate", o.ablate,
        {"Parts that are removed, one at a time: heads, the attention of each layer, sublayers, or none", "ablation",
         {}, kCommon});
  visit("replace_by", o.replace_by,
        {"Replace the output of a removed part by zeros, or by its mean over the data", "ablation", {}, kCommon});
  visit("importance", o.importance,
        {"Compute the importance of heads by their gradients even if nothing is removed", "ablation", {}, kCommon});
  visit("bleu", o.bleu,
        {"Also translate the data without each part, greedily, for the change of BLEU; needs a target", "ablation", {},
         kCommon});
  visit("examples", o.examples, {"Number of attention maps kept for each head", "output", between(0, 100), kCommon});
  visit("show_line", o.show_line,
        {"Also keep the attention map of this line of the data for each head; 0: of none", "output", at_least(0),
         kCommon});
  visit("resamples", o.resamples, {"Number of bootstrap samples of each interval", "ablation", between(1, 1'000'000)});
  visit("seed", o.seed, {"Seed of the bootstrap, and of the masks of an encoder", "ablation", at_least(0)});
  visit("batch_tokens", o.batch_tokens,
        {"Maximum number of tokens of a batch; a longer text is a batch of its own", "execution",
         between(1, 1 << 24)});
}

// The mean of a score over the rows for which it is defined.
struct HeadScore {
  std::string name;
  double value = 0;
  std::optional<double> uniform = {};  // the score of attention that is the same for all keys that a row sees
  int64_t rows = 0;
};

// The share of words whose most attended word is the right one.
struct WordAgreement {
  std::string relation;   // "alignment", or a relation of CoNLL-U, such as "nsubj"
  std::string direction;  // "target to source", "dependent to head" or "head to dependent"
  int64_t pairs = 0;
  double share = 0;     // of the pairs whose most attended word is the right one
  double baseline = 0;  // the same share of the best fixed offset
  int64_t offset = 0;   // of the baseline: the right word is this many words after the word itself
};

// A change with its bootstrap interval of 95 %.
struct Change {
  double value = 0, low = 0, high = 0;
};

// The weights of a head on one text: rows × columns, row-major.
struct HeadExample {
  int64_t line = 0;  // of the data, from 1; of a log: the number of the user
  std::vector<std::string> rows, columns;
  std::vector<float> weights;
};

struct HeadReport {
  std::string kind;             // "encoder", "decoder" or "cross"
  int64_t layer = 1, head = 1;  // from 1
  std::string role;             // what it does, in a few words
  double strength = 0;          // of the role: (score − uniform) / (1 − uniform), at most 1
  std::vector<HeadScore> scores = {};
  std::vector<WordAgreement> agreements = {};
  std::optional<double> importance = {};  // mean over tokens of |∂ loss / ∂ ξ|, where ξ = 1 multiplies the head's output
  std::vector<HeadExample> examples = {};
};

// The effect of removing a part.
struct AblationReport {
  std::string part;                  // "encoder self-attention", "decoder cross-attention", "decoder feed-forward", …
  int64_t layer = 1, head = 0;       // from 1; head 0 means the whole part
  Change loss = {};                  // of the loss per token in nats; above 0 means that the part is needed
  std::optional<Change> ndcg10 = {};  // of a recommender
  std::optional<Change> bleu = {};    // of a translator's greedy translations, if requested
};

struct HeadsReport {
  std::string run;
  RunKind kind = RunKind::translator;
  int64_t texts = 0, source_tokens = 0, target_tokens = 0;
  bool own_translations = false;        // the targets are the model's own
  std::optional<double> loss = {};      // per token, in nats, if it was computed
  std::optional<double> ndcg10 = {};    // of a recommender, if the loss was computed
  std::optional<double> bleu = {};      // of greedy translations, if requested
  Ablation ablate = Ablation::none;
  Replacement replace_by = Replacement::zero;
  std::vector<HeadReport> heads = {};  // all heads: by kind, layer and head
  std::vector<AblationReport> ablations = {};
};

// Describes a score or role of reports in words, such as "attention to the token before".
struct HeadScoreInfo {
  std::string_view name, meaning;
};
std::vector<HeadScoreInfo> head_scores();

// The head that scores highest on a relation, whether or not it is the role of that head.
struct BestHead {
  std::string relation;          // a role, such as "token before", "aligned word", or a relation of CoNLL-U
  std::string direction = "";    // of an agreement, otherwise ""
  std::string kind;              // "encoder", "decoder" or "cross"
  int64_t layer = 1, head = 1;   // from 1
  int64_t count = 0;             // rows of a score, pairs of an agreement
  double value = 0;              // the score, or the share of pairs
  double baseline = 0;           // the score of uniform attention, or the share of the best fixed offset
  std::optional<int64_t> offset = {};  // of an agreement's baseline
  std::optional<Change> loss = {};     // without the head, if heads were removed
};

// Returns the best head of each role, among those for which its score is defined for a quarter of the rows, and of each
// relation and direction of words in each kind of attention. The best head has the greatest
// (value − baseline) / (1 − baseline). Roles come first, then relations, the most frequent ones first.
std::vector<BestHead> best_heads(const HeadsReport& report);

// Analyses a run of any kind. Throws Error, naming file and line, for data that the model cannot read, and for options
// that do not fit the run.
HeadsReport analyse_heads(const std::string& run, const HeadsOptions& options);

// Return a report as text for a terminal, as JSON, and as one self-contained HTML page that needs no network.
std::string heads_to_text(const HeadsReport& report);
std::string heads_to_json(const HeadsReport& report);
std::string heads_to_html(const HeadsReport& report);

// Throws Error, naming the file, if `out` exists or the run is quantized; and, naming the option of the model, if the
// model cannot lose `count` heads of each attention.
void check_prune(const std::string& run, int64_t count, const std::string& out);

struct PruneReport {
  std::string out;                                   // the run directory that was written
  std::vector<std::string> removed;                  // "encoder self-attention, layer 1: heads 2, 5"
  int64_t parameters_before = 0, parameters = 0;
};

// Writes the run directory `out`, whole or not at all: `run` without the `count` least important heads of each
// attention. Its outputs equal those of `run` with these heads set to zero. `report` must have the importance of all
// heads. The run has no training state; pruned_heads.json in it says what was removed. Throws Error as check_prune does.
PruneReport prune_heads(const std::string& run, const HeadsReport& report, int64_t count, const std::string& out);

}  // namespace qkv
