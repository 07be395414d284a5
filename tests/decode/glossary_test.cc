// The glossary of a translation: its file, its terms in a text, and the spellings of their translations.
#include "decode/terms/glossary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>
#include <utility>

#include "qkv/translator.h"
#include "tests/support/errors.h"
#include "tests/support/processor_time.h"
#include "tests/support/temp_dir.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using TermList = std::vector<std::string>;
using testing::error_of;
using testing::expect_contains;

Glossary glossary_of(std::string_view text) { return Glossary::parse(text, "terms.tsv"); }
std::string glossary_error(std::string_view text) {
  const std::string error = error_of([&] { glossary_of(text); });
  EXPECT_EQ(error.find('\n'), error.npos);
  return error;
}

// The bytes that match, and the first target of each.
TermList terms_in(const Glossary& glossary, std::string_view text) {
  TermList result;
  for (const GlossaryMatch& match : glossary.find(text))
    result.push_back(std::string(text.substr(match.begin, match.end - match.begin)) + "=" +
                     glossary.entries().at(match.entry).targets.at(0));
  return result;
}
TermList terms_in(std::string_view glossary, std::string_view text) { return terms_in(glossary_of(glossary), text); }

TEST(GlossaryFile, HasAnEntryPerLine) {
  const Glossary glossary =
      glossary_of("\uFEFF# animals\r\ndog | dogs\tHund|Hunde | Hundes\r\n\n \t \ncat\tKatze\ta note");
  ASSERT_EQ(glossary.entries().size(), 2u);
  EXPECT_EQ(glossary.entries()[0].sources, (TermList{"dog", "dogs"}));
  EXPECT_EQ(glossary.entries()[0].targets, (TermList{"Hund", "Hunde", "Hundes"}));
  EXPECT_EQ(glossary.entries()[0].line, 2u);
  EXPECT_EQ(glossary.entries()[1].targets, TermList{"Katze"});
  EXPECT_EQ(glossary.entries()[1].line, 5u);
}

TEST(GlossaryFile, MayBeEmpty) {
  for (const char* text : {"", "\uFEFF", "# nothing\n\n", "\t\t\n"}) EXPECT_TRUE(glossary_of(text).empty()) << text;
  EXPECT_TRUE(Glossary().empty());
  EXPECT_TRUE(Glossary().find("a dog").empty());
}

TEST(GlossaryFile, TrimsTermsAndReadsEscapes) {
  const Glossary glossary = glossary_of(" a\\|b |\u00A0c\\\\\t \\n | d\\| \u3000\n #tag\tx\n");
  ASSERT_EQ(glossary.entries().size(), 2u);
  EXPECT_EQ(glossary.entries()[0].sources, (TermList{"a|b", "c\\"}));
  EXPECT_EQ(glossary.entries()[0].targets, (TermList{"\\n", "d|"}));
  EXPECT_EQ(glossary.entries()[1].sources, TermList{"#tag"});
}

TEST(GlossaryFile, ReportsWhatIsNotAccepted) {
  EXPECT_EQ(glossary_error("a\tb\ndog,Hund\n"),
            "terms.tsv:2: has no tab; expected a source term, a tab and a target term (CSV is not accepted)");
  EXPECT_EQ(glossary_error("\tHund"), "terms.tsv:1: the source is empty, expected text");
  EXPECT_EQ(glossary_error("dog\t \tnote"), "terms.tsv:1: the target is empty, expected text");
  EXPECT_EQ(glossary_error("\u00AD\tHund"), "terms.tsv:1: the source is empty, expected text");
  EXPECT_EQ(glossary_error("dog\tHund | "), "terms.tsv:1: an alternative of the target is empty, expected text");
  EXPECT_EQ(glossary_error("dog||dogs\tHund"), "terms.tsv:1: an alternative of the source is empty, expected text");
  EXPECT_EQ(
      glossary_error("a\tb\nd\xFFg\tHund"),
      "terms.tsv:2: byte 2 of the line is not valid UTF-8 (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" makes it so)");
  EXPECT_EQ(glossary_error(std::string_view("a\tb\n# \0\n", 8)),
            "terms.tsv:2: byte 3 of the line is NUL, expected UTF-8 text");
  expect_contains(glossary_error("\x1F\x8B\x08"), "compressed");
  expect_contains(error_of([] { Glossary::parse("a", "two\nlines"); }), ":1: has no tab");
}

TEST(GlossaryFile, HasLimits) {
  const std::string longest(Glossary::kMostTermBytes, 'x');
  EXPECT_EQ(glossary_of(longest + "\t" + longest).entries().size(), 1u);
  EXPECT_EQ(glossary_error(longest + "x\ty"), "terms.tsv:1: the source has 1001 bytes, expected at most 1000");
  EXPECT_EQ(glossary_error("x\ta | " + longest + "y"),
            "terms.tsv:1: an alternative of the target has 1001 bytes, expected at most 1000");
  std::string forms = "a\tx0";
  for (int i = 1; i < 100; i++) forms += "|x" + std::to_string(i);
  EXPECT_EQ(glossary_of(forms).entries()[0].targets.size(), 100u);
  EXPECT_EQ(glossary_error(forms + "|y"), "terms.tsv:1: the target has 101 alternatives, expected at most 100");
  EXPECT_EQ(glossary_error(forms + "\n\na\ty\n"),
            "terms.tsv:3: \"a\" has 101 targets in the lines 1 to 3, expected at most 100");
  std::string lines;
  for (size_t i = 0; i < Glossary::kMostEntries; i++) lines += "a\tb\n";
  EXPECT_EQ(glossary_error(lines + "a\tb\n"), "terms.tsv:1000001: is entry 1000001, expected at most 1000000");
  EXPECT_EQ(glossary_error(std::string(Glossary::kMostBytes + 1, '\n')),
            "terms.tsv: has 134217729 bytes, expected at most 134217728");
}

TEST(GlossaryFile, LimitsCopiesOfTargets) {
  std::string text;
  for (int line = 0; line < 25; line++) {
    for (int i = 0; i < 100; i++) text += (i ? "|s" : "s") + std::to_string(100 * line + i);
    for (int i = 0; i < 100; i++) text += (i ? "|" : "\t") + std::string(900, 'x') + std::to_string(i);
    text += '\n';
  }
  for (int i = 0; i < 2500; i++) text += "s" + std::to_string(i) + "\t" + std::string(900, 'x') + "0\n";
  expect_contains(glossary_error(text),
                  "the targets of sources that occur in several lines have more than 134217728 bytes");
}

TEST(GlossaryFile, UnitesTheTargetsOfASource) {
  const Glossary glossary =
      glossary_of("dog|dogs\tHund|Hunde\ncat\tKatze\ndog|hound\tKöter|Hund\nDog\tDogge\nDOG \tX\n");
  const std::vector<GlossaryEntry>& entries = glossary.entries();
  ASSERT_EQ(entries.size(), 6u);
  EXPECT_EQ(entries[0].sources, TermList{"dog"});
  EXPECT_EQ(entries[0].targets, (TermList{"Hund", "Hunde", "Köter"}));
  EXPECT_EQ(entries[0].line, 1u);
  EXPECT_EQ(entries[1].sources, TermList{"dogs"});
  EXPECT_EQ(entries[1].targets, (TermList{"Hund", "Hunde"}));
  EXPECT_EQ(entries[2].sources, TermList{"cat"});
  EXPECT_EQ(entries[3].sources, TermList{"hound"});
  EXPECT_EQ(entries[3].targets, (TermList{"Köter", "Hund"}));
  EXPECT_EQ(terms_in(glossary, "dog Dog DOG dOG"), (TermList{"dog=Hund", "Dog=Dogge", "DOG=X", "dOG=Hund"}));
}

TEST(GlossaryFile, UnitesSourcesThatMatchTheSameTermList) {
  const Glossary glossary = glossary_of("a\u0308  b|ä b\tx|x\n\u00E4\u00A0b\ty\nstraße\t1\nstrasse\t2\n");
  ASSERT_EQ(glossary.entries().size(), 2u);
  EXPECT_EQ(glossary.entries()[0].sources, TermList{"a\u0308  b"});
  EXPECT_EQ(glossary.entries()[0].targets, (TermList{"x", "y"}));
  EXPECT_EQ(glossary.entries()[1].targets, (TermList{"1", "2"}));
  EXPECT_EQ(glossary_of("a|b\t1\na|b\t2\n").entries().size(), 1u);
}

TEST(GlossaryText, HasTheEntriesThatAreGiven) {
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"# a", "|"}, {"#b", "\\|"}, {"dog", "Hund"}, {"dog", "Köter"}, {"c\\d", "#"}};
  const Glossary glossary = glossary_of(glossary_text(entries));
  ASSERT_EQ(glossary.entries().size(), 4u);
  EXPECT_EQ(terms_in(glossary, "c\\d, # a and #b"), (TermList{"c\\d=#", "# a=|", "#b=\\|"}));
  EXPECT_EQ(glossary.entries()[2].targets, (TermList{"Hund", "Köter"}));
  EXPECT_EQ(glossary_text({}), "");
  const auto error = [](const std::string& source, const std::string& target) {
    return error_of([&] { glossary_text({{"a", "b"}, {source, target}}); });
  };
  EXPECT_EQ(error("", " "), "glossary: entry 2: the source is empty, expected text");
  EXPECT_EQ(error("a", "\u00AD"), "glossary: entry 2: the target is empty, expected text");
  EXPECT_EQ(error("a\tb", "c"), "glossary: entry 2: the source must have no tab and no line end (is \"a\\tb\")");
  EXPECT_NE(error("a", "b\nc"), "");
}

TEST(GlossaryFile, IsReadAndChecked) {
  const testing::TempDir directory;
  testing::spill(directory / "terms.tsv", "\uFEFFdog\tHund\r\n#\ncat\tKatze");
  EXPECT_EQ(glossary_of(read_glossary(directory / "terms.tsv")).entries().size(), 2u);
  expect_contains(error_of([&] { read_glossary(directory / "none.tsv"); }), "none.tsv");
  testing::spill(directory / "bad.tsv", "# animals\ndog\n");
  expect_contains(error_of([&] { read_glossary(directory / "bad.tsv"); }), "bad.tsv:2: has no tab");
  testing::spill(directory / "latin1.tsv", "# animals\nb\xE4r\tbear\n");
  expect_contains(error_of([&] { read_glossary(directory / "latin1.tsv"); }), "latin1.tsv:2: byte 2 of the line");
  testing::spill(directory / "large.tsv", "");
  std::filesystem::resize_file(directory / "large.tsv", Glossary::kMostBytes + 1);
  expect_contains(error_of([&] { read_glossary(directory / "large.tsv"); }), "a glossary has at most 134217728 bytes");
}

TEST(GlossaryFile, MayBeCompressed) {
  const testing::TempDir directory;
  constexpr unsigned char kGzip[] = {0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0x4B, 0xC9, 0x4F, 0xE7, 0xF4, 0x28, 0xCD, 0x4B, 0xE1, 0x02,
                                     0x00, 0x03, 0xB7, 0x3C, 0x10, 0x09, 0x00, 0x00, 0x00};
  testing::spill(directory / "terms.tsv.gz", std::string(std::begin(kGzip), std::end(kGzip)));
  EXPECT_EQ(read_glossary(directory / "terms.tsv.gz"), "dog\tHund\n");
}

TEST(GlossaryTerms, StandBetweenWordBoundaries) {
  const Glossary glossary = glossary_of("dog\tHund\n+\tplus\nCO\tKohlenmonoxid\n");
  EXPECT_EQ(terms_in(glossary, "dog dogs hotdog dog2 2dog dog-house (dog) dog's \"dog\" a_dog"),
            (TermList{"dog=Hund", "dog=Hund", "dog=Hund", "dog=Hund", "dog=Hund", "dog=Hund"}));
  EXPECT_EQ(terms_in(glossary, "dog\u0301 dogé édog dogи"), TermList{});
  EXPECT_EQ(terms_in(glossary, "1+1 a++"), (TermList{"+=plus", "+=plus", "+=plus"}));
  EXPECT_EQ(terms_in(glossary, "CO CO₂ H₂CO"), TermList{"CO=Kohlenmonoxid"});
  EXPECT_EQ(terms_in("개\tdog", "개 개가"), TermList{"개=dog"}) << "Korean has spaces between words";
}

TEST(GlossaryTerms, MatchByCase) {
  const Glossary glossary =
      glossary_of("dog\tHund\nPolish\tpolnisch\npolish\tpolieren\niPhone\tTelefon\nStraße\tstreet\n");
  EXPECT_EQ(terms_in(glossary, "dog Dog DOG dOg"), (TermList{"dog=Hund", "Dog=Hund", "DOG=Hund", "dOg=Hund"}));
  EXPECT_EQ(terms_in(glossary, "Polish polish POLISH pOlish"),
            (TermList{"Polish=polnisch", "polish=polieren", "POLISH=polnisch", "pOlish=polieren"}));
  EXPECT_EQ(terms_in(glossary, "iPhone IPHONE iphone IPhone"), (TermList{"iPhone=Telefon", "IPHONE=Telefon"}));
  EXPECT_EQ(terms_in(glossary, "Straße STRASSE Strasse straße"), (TermList{"Straße=street", "STRASSE=street"}));
  EXPECT_EQ(terms_in("straße\tstreet\nΟΔΌΣ\tX\nλόγος\ty", "STRASSE Strasse λόγοσ ΛΌΓΟΣ"),
            (TermList{"STRASSE=street", "Strasse=street", "λόγοσ=y", "ΛΌΓΟΣ=y"}));
  EXPECT_EQ(terms_in("Nato\t1\nNATO\t2", "Nato NATO"), (TermList{"Nato=1", "NATO=2"}));
}

TEST(GlossaryTerms, MatchComposedAndDecomposedCharacters) {
  const std::string composed = "B\u00E4r", decomposed = "Ba\u0308r", text = composed + " " + decomposed + " Bar";
  for (const std::string& term : {composed, decomposed}) {
    const std::vector<GlossaryMatch> matches = glossary_of(term + "\tbear").find(text);
    EXPECT_EQ(matches, (std::vector<GlossaryMatch>{{0, 4, 0}, {5, 10, 0}})) << term;
  }
  EXPECT_EQ(glossary_of("über\tover").find("\u00DCBER U\u0308ber uber").size(), 2u);
  EXPECT_EQ(glossary_of("Donaudampf\tx").find("Do\u00ADnau\u00ADdampf").size(), 1u) << "soft hyphens";
  EXPECT_EQ(glossary_of("\u2764\tx").find("\u2764\uFE0F").size(), 1u) << "variation selector";
}

TEST(GlossaryTerms, MatchAnyWhiteSpace) {
  const Glossary glossary = glossary_of("new  york\tNew York\nc #\tx");
  EXPECT_EQ(glossary.find("New York, new\n\t york; NEW\u00A0YORK newyork new-york c# c #").size(), 4u);
  EXPECT_EQ(glossary.find(" new york ").at(0), (GlossaryMatch{1, 9, 0}));
}

TEST(GlossaryTerms, AreTheLongestAtTheFirstPlace) {
  const Glossary glossary = glossary_of("a\t1\na b\t2\nb c d\t3\nc\t4\na b c e\t5\nC++\t6\nC\t7\n");
  EXPECT_EQ(terms_in(glossary, "a b c d"), (TermList{"a b=2", "c=4"}));
  EXPECT_EQ(terms_in(glossary, "a b c e"), TermList{"a b c e=5"});
  EXPECT_EQ(terms_in(glossary, "x b c d a"), (TermList{"b c d=3", "a=1"}));
  EXPECT_EQ(terms_in(glossary, "C++ C# c"), (TermList{"C++=6", "C=7", "c=4"}));
}

TEST(GlossaryTerms, NeedNoBoundariesInScriptsWithoutSpaces) {
  EXPECT_EQ(terms_in("北京\tBeijing\n北京大学\tPKU\n京\tcapital", "我在北京大学，北京和东京。"),
            (TermList{"北京大学=PKU", "北京=Beijing", "京=capital"}));
  EXPECT_EQ(terms_in("がっこう\tschool\nAPI\tAPI", "か\u3099っこうのAPIを"),
            (TermList{"か\u3099っこう=school", "API=API"}));
  EXPECT_EQ(terms_in("か\tx", "が か\u3099 か"), TermList{"か=x"}) << "a mark belongs to its letter";
  EXPECT_EQ(terms_in("１\tone", "１０ 第１章"), TermList{"１=one"}) << "a number of digits";
  EXPECT_EQ(terms_in("หมา\tdog", "ผมมีหมาสองตัว"), TermList{"หมา=dog"});
  EXPECT_EQ(terms_in("ໝາ\tdog", "ຂ້ອຍມີໝາ"), TermList{"ໝາ=dog"});
  EXPECT_EQ(terms_in("ឆ្កែ\tdog", "ខ្ញុំមានឆ្កែ"), TermList{"ឆ្កែ=dog"});
  EXPECT_EQ(terms_in("ခွေး\tdog", "ကျွန်တော်ခွေးရှိတယ်"), TermList{"ခွေး=dog"});
}

TEST(GlossaryTerms, AreBytesOfTheText) {
  const std::string text = "Große 🐕 Äpfel\xFF äpfel";
  const std::vector<GlossaryMatch> matches = glossary_of("äpfel\tapples\n🐕\tdog").find(text);
  EXPECT_EQ(matches, (std::vector<GlossaryMatch>{{7, 11, 1}, {12, 18, 0}, {20, 26, 0}}));
}

// A plain search that tries every term at every place.
class PlainGlossary {
 public:
  explicit PlainGlossary(const Glossary& glossary) : entries_(glossary.entries()) {}

  std::vector<GlossaryMatch> find(const TermList& units) const {
    std::vector<GlossaryMatch> matches;
    std::vector<size_t> begins = {0};
    for (const std::string& unit : units) begins.push_back(begins.back() + unit.size());
    for (size_t begin = 0, end; begin < units.size(); begin = std::max(end, begin + 1))
      for (end = units.size(); end > begin; end--)
        if (const int64_t entry = entry_of(units, begin, end); entry >= 0) {
          matches.push_back({begins[begin], begins[end], static_cast<size_t>(entry)});
          break;
        }
    return matches;
  }

 private:
  static bool continues(const std::string& a, const std::string& b) {
    static const TermList words = {"a", "A", "ä", "a\u0308", "b"};
    const auto is_word = [](const std::string& unit) { return std::ranges::count(words, unit) > 0; };
    return is_word(a) && is_word(b);
  }

  static std::string plain(std::string_view text) {
    std::string joined;
    for (const std::string_view word : split_words(text)) joined += (joined.empty() ? "" : " ") + std::string(word);
    return compose(joined);
  }

  static std::string upper(std::string text) {
    for (const auto& [from, to] : {std::pair{"a", "A"}, {"b", "B"}, {"ä", "Ä"}})
      for (size_t at; (at = text.find(from)) != text.npos;) text.replace(at, std::string_view(from).size(), to);
    return text;
  }

  // Returns how well a term matches: 3 as it is written, 2 in upper case, 1 without regard to case, 0 not at all.
  static int rank(const std::string& term, const std::string& text) {
    if (lowercase(term) == term) return term == lowercase(text);
    return term == text ? 3 : upper(term) == text ? 2 : 0;
  }

  int64_t entry_of(const TermList& units, size_t begin, size_t end) const {
    if (begin > 0 && continues(units[begin - 1], units[begin])) return -1;
    if (end < units.size() && continues(units[end - 1], units[end])) return -1;
    std::string text;
    for (size_t i = begin; i < end; i++) text += units[i];
    if (split_words(units[begin]).empty() || split_words(units[end - 1]).empty()) return -1;
    int64_t best = -1;
    for (size_t i = 0, most = 0; i < entries_.size(); i++)
      for (const std::string& source : entries_[i].sources)
        if (const size_t match = static_cast<size_t>(rank(plain(source), plain(text))); match > most)
          best = static_cast<int64_t>(i), most = match;
    return best;
  }

  const std::vector<GlossaryEntry>& entries_;
};

TEST(GlossaryTerms, AreThoseOfAPlainSearch) {
  const TermList alphabet = {"a", "A", "ä", "a\u0308", "b", "b", " ", " ", "\u00A0 ", "-", "東", "が", "か\u3099"};
  std::mt19937 random(1);
  const auto some = [&](size_t most) {
    TermList units(1 + random() % most);
    for (std::string& unit : units) unit = alphabet[random() % alphabet.size()];
    return units;
  };
  const auto joined = [](const TermList& units) {
    std::string text;
    for (const std::string& unit : units) text += unit;
    return text;
  };
  size_t matches = 0;
  for (int round = 0; round < 300; round++) {
    std::string file;
    for (int line = 0; line < 12; line++)
      if (const std::string term = joined(some(5)); !split_words(term).empty())
        file += " " + term + "\t" + std::to_string(line) + "\n";
    const Glossary glossary = glossary_of(file);
    for (int i = 0; i < 3; i++) {
      const TermList units = some(30);
      const std::vector<GlossaryMatch> expected = PlainGlossary(glossary).find(units);
      matches += expected.size();
      ASSERT_EQ(glossary.find(joined(units)), expected) << file << "in: " << joined(units);
    }
  }
  EXPECT_GT(matches, 1000u);
}

TEST(GlossaryTerms, AreFoundInLinearTime) {
  std::string file, text;
  for (int i = 0; i < 10'000; i++) file += "term" + std::to_string(i) + " of many\tTerm " + std::to_string(i) + "\n";
  for (int i = 0; text.size() < 100'000; i++) text += "term" + std::to_string(i * 7 % 20'000) + " of many ";
  Glossary glossary;
  EXPECT_LT(testing::processor_seconds([&] { glossary = glossary_of(file); }), 20);
  EXPECT_LT(testing::processor_seconds([&] { EXPECT_GT(glossary.find(text).size(), 2'000u); }), 10);
}

TEST(GlossaryTerms, AreFoundInHostileTexts) {
  std::string file, term = "a", text, han, marks = "a";
  for (int i = 0; i < 499; i++, term += " a") file += term + " b\tx\n";
  while (text.size() < 30'000) text += "a ";
  while (han.size() < 100'000) han += "東";
  while (marks.size() < 100'000) marks += "\u0301\u0323";
  const Glossary glossary = glossary_of(file);
  EXPECT_LT(testing::processor_seconds([&] { EXPECT_TRUE(glossary.find(text).empty()); }), 60);
  EXPECT_LT(testing::processor_seconds([&] { EXPECT_TRUE(glossary.find(han).empty()); }), 10);
  EXPECT_LT(testing::processor_seconds([&] { EXPECT_TRUE(glossary.find(marks).empty()); }), 10);
}

TEST(TargetSpellings, IncludeTheStartOfASentence) {
  EXPECT_EQ(target_spellings("dog", {{"dog"}, {"Hund", "köter", "Köter", "übel"}, 1}),
            (TermList{"Hund", "köter", "Köter", "übel", "Übel"}));
  EXPECT_EQ(target_spellings("x", {{"x"}, {"iPhone", "ßa", "犬", "\"a\"", "1a"}, 1}),
            (TermList{"iPhone", "IPhone", "ßa", "Ssa", "犬", "\"a\"", "1a"}));
  EXPECT_EQ(target_spellings("Dog", {{"dog"}, {"hund"}, 1}), (TermList{"hund", "Hund"}));
}

TEST(TargetSpellings, FollowASourceInUpperCase) {
  EXPECT_EQ(target_spellings("DOG", {{"dog"}, {"Hund", "große Dogge"}, 1}),
            (TermList{"HUND", "GROSSE DOGGE", "Hund", "große Dogge", "Große Dogge"}));
  EXPECT_EQ(target_spellings("NATO", {{"NATO", "Atlantic Alliance"}, {"Nato"}, 1}), TermList{"Nato"});
  EXPECT_EQ(target_spellings("I", {{"i"}, {"ich"}, 1}), (TermList{"ich", "Ich"})) << "a single letter";
  EXPECT_EQ(target_spellings("犬", {{"犬"}, {"dog"}, 1}), (TermList{"dog", "Dog"}));
  EXPECT_EQ(target_spellings("NEW YORK", {{"New York"}, {"NEW YORK"}, 1}), TermList{"NEW YORK"});
}

}  // namespace
}  // namespace qkv
