// Words that decide about the end of a sentence: abbreviations, and words that often begin one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace qkv::sentence {

// Kinds of abbreviations, by whether a sentence may end at their full stop.
enum class Abbreviation : uint8_t {
  none,           // a word like any other
  before_name,    // never ends one: "Dr."
  before_number,  // an abbreviation only before a number: "No. 5"
  anywhere,       // ends one if the next word is likely to begin one: "Inc."
  after_number,   // like `anywhere`, but after a number it also ends one before any other capital: "5 min."
};

// Returns the kind of a word without its final full stop: by the built-in lists, by `more` (in lower case; their kind
// is `anywhere`), and by rules. A built-in word with a capital is found only with it.
Abbreviation kind_of_abbreviation(std::string_view word, const std::unordered_set<std::string>& more);

// Roles of words, which are in lower case. The lists join those of many languages.
enum class WordRole : uint8_t {
  starter,   // rarely has a capital except at the start of a sentence: articles, conjunctions, prepositions
  particle,  // a starter that may also begin a surname, as "van"
  pronoun,   // begins a sentence even of those who write no capitals: "you", "please"
  article,   // a definite article of German, after which a number with a full stop is an ordinal
  german,    // frequent in German and rare in other languages
  date,      // names a month or a century, after an ordinal
};

bool has_role(std::string_view word, WordRole role);

}  // namespace qkv::sentence
