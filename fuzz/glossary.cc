// A glossary, and its own bytes as the text in which its terms are searched for.
#include "decode/terms/glossary.h"

#include <algorithm>

#include "fuzz/reader.h"
#include "qkv/translator.h"

namespace {

using namespace qkv;
using fuzz::require;

void check_matches(const Glossary& glossary, std::string_view text) {
  size_t done = 0;
  for (const GlossaryMatch& match : glossary.find(text)) {
    require(match.begin >= done && match.begin < match.end && match.end <= text.size(), "matches are in order");
    require(match.entry < glossary.entries().size(), "a match has an entry");
    const GlossaryEntry& entry = glossary.entries()[match.entry];
    const auto spellings = target_spellings(text.substr(match.begin, match.end - match.begin), entry);
    for (const std::string& target : entry.targets)
      require(std::ranges::count(spellings, target) == 1, "a target is one of its spellings");
    done = match.end;
  }
}

void check_entry(const Glossary& glossary, size_t place) {
  const GlossaryEntry& entry = glossary.entries()[place];
  require(!entry.sources.empty() && !entry.targets.empty() && entry.line > 0, "an entry is complete");
  for (const std::string& source : entry.sources) {
    const std::vector<GlossaryMatch> matches = glossary.find(source);
    require(matches.size() == 1 && matches[0].entry == place, "a source is found in itself");
  }
}

}  // namespace

void qkv::fuzz::fuzz_glossary(std::string_view bytes) {
  attempt([&] {
    const Glossary glossary = Glossary::parse(bytes, "terms.tsv");
    for (size_t place = 0; place < glossary.entries().size(); place++) check_entry(glossary, place);
    check_matches(glossary, bytes);
  });
  attempt([&] {
    const std::string text = read_glossary(MemoryFile(bytes).path());
    must_succeed([&] { Glossary::parse(text, "terms.tsv"); });
  });
}
