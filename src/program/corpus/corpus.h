// Checks and filters of training text: what `qkv data check` reports and `qkv data clean` removes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/field.h"
#include "qkv/interactions.h"

namespace qkv {

// The pairs that are dropped. Pairs that are not UTF-8, that have an empty side or that lack a tab always are.
struct PairFilters {
  int64_t max_words = 200;
  int64_t max_characters = 2000;
  double max_ratio = 4;
  bool garbled = true;
  bool copies = true;
  bool languages = true;
  bool duplicates = true;
  bool overlap = true;

  bool operator==(const PairFilters&) const = default;
};

// Calls visit(name, member, field) for every field. This list defines the command line.
template <class Visitor>
void visit_fields(PairFilters& f, Visitor&& visit) {
  constexpr Range kCount = at_least(0);
  visit("max_words", f.max_words, {"Drop pairs with more words on a side; 0 is no limit", "filters", kCount, kCommon});
  visit("max_characters", f.max_characters,
        {"Drop pairs with more characters on a side; 0 is no limit", "filters", kCount, kCommon});
  visit("max_ratio", f.max_ratio,
        {"Drop pairs whose longer side has more than this times the characters of the other, after scaling by the mean "
         "lengths of both sides; 0 is no limit",
         "filters", kCount, kCommon});
  visit("garbled", f.garbled,
        {"Drop pairs with replacement characters, or text that was encoded twice or escaped on one side only",
         "filters"});
  visit("copies", f.copies, {"Drop pairs whose sides are equal", "filters"});
  visit("languages", f.languages,
        {"Drop pairs with a side in the other side's language, by the byte sequences of the whole text", "filters"});
  visit("duplicates", f.duplicates, {"Drop pairs that occurred before", "filters"});
  visit("overlap", f.overlap, {"Drop training pairs whose source is in the dev text", "filters"});
}

// One kind of defect, and the pairs that have it. A pair counts once, for the first kind that applies.
struct Defect {
  std::string name;     // "duplicate"
  std::string meaning;  // "occurred before"
  int64_t pairs = 0;
  int64_t first_line = 0;  // of such a pair, from 1; 0 if there is none
};

// A parallel text.
struct PairReport {
  std::vector<std::string> files;
  int64_t pairs = 0, kept = 0;
  std::vector<Defect> defects;  // all kinds, in the order in which they are tested
  int64_t several = 0;          // kept pairs whose source occurred before, with another target
  int64_t spaces = 0;           // kept pairs with control characters, or spaces that are not single ones between words
  double source_words = 0, target_words = 0;            // mean of the kept pairs
  double source_characters = 0, target_characters = 0;  // mean of the kept pairs
  bool swapped = false;  // of a dev text: its sides are in the order target, source, compared with the training text
};

struct CorpusReport {
  PairReport train;
  PairReport dev;  // without files if there is no dev text
};

// Examines a training text and a dev text, each as two line-aligned files or one file of lines "source TAB target".
// Reads the training text twice. Memory is 1 MiB and at most 44 bytes per pair. Throws Error, naming the file, for
// files that cannot be read twice and for two files with different numbers of lines.
CorpusReport check_corpus(const std::vector<std::string>& train, const std::vector<std::string>& dev = {},
                          const PairFilters& filters = {});

// Writes the pairs of a training text that pass the filters, in their order, to as many files as the text has. Control
// characters become spaces, and spaces are reduced to single ones between words. Every output is complete or absent,
// and depends on the files and the filters alone. Throws Error as check_corpus does, for outputs of another number, and
// for an output that is also an input.
CorpusReport clean_corpus(const std::vector<std::string>& train, const std::vector<std::string>& out,
                          const std::vector<std::string>& dev = {}, const PairFilters& filters = {});

// Reads the log of a recommender as training does, and returns what was read and dropped. Throws Error, naming file and
// line, for what training would refuse.
ReadReport check_logs(const std::vector<std::string>& files, const InteractionOptions& options = {});

// Return one sentence for each thing to know or mend before training; none if all is well.
std::vector<std::string> advice_for(const CorpusReport& report);
std::vector<std::string> advice_for(const ReadReport& report);

// Return the report and the advice as one JSON object.
std::string to_json(const CorpusReport& report);
std::string to_json(const ReadReport& report);

}  // namespace qkv
