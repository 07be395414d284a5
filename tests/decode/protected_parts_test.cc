// Parts of a text that a translation keeps.
#include "decode/terms/protected_parts.h"

#include <gtest/gtest.h>

#include <random>

#include "qkv/error.h"
#include "tests/support/processor_time.h"

namespace qkv {
namespace {

using Texts = std::vector<std::string>;

Texts found(const ProtectedPartFinder& finder, const std::string& text) {
  Texts texts;
  for (const ProtectedPart& part : finder.find(text)) texts.push_back(text.substr(part.begin, part.end - part.begin));
  return texts;
}

const ProtectedPartFinder& built_in() {
  static const ProtectedPartFinder finder(true, "");
  return finder;
}

// Expects that each text is protected as a whole, also in the midst of a sentence.
void expect_protected(const Texts& texts) {
  for (const std::string& text : texts) {
    EXPECT_EQ(found(built_in(), text), Texts{text});
    EXPECT_EQ(found(built_in(), "We see " + text + ", then"), Texts{text});
    EXPECT_EQ(found(built_in(), "“" + text + "”"), Texts{text});
    EXPECT_EQ(found(built_in(), "Das ist es (" + text + ")."), Texts{text});
  }
}

void expect_none(const Texts& texts) {
  for (const std::string& text : texts) EXPECT_EQ(found(built_in(), text), Texts()) << text;
}

TEST(ProtectedParts, Urls) {
  expect_protected({"https://example.com/a/b?c=d&e=f#g", "http://localhost:8080", "www.example.org",
                    "mailto:someone@example.com", "ftp://files.example.com/x.tar.gz", "git+ssh://host/path",
                    "https://en.wikipedia.org/wiki/Foo_(bar)", "https://de.wikipedia.org/wiki/Köln", "HTTPS://X.ORG",
                    "file:///etc/hosts", "https://host/{id}/x"});
  EXPECT_EQ(found(built_in(), "(see https://en.wikipedia.org/wiki/Foo_(bar))."),
            Texts{"https://en.wikipedia.org/wiki/Foo_(bar)"});
  EXPECT_EQ(found(built_in(), "At https://a.org/b, https://c.org! And http://d.org..."),
            (Texts{"https://a.org/b", "https://c.org", "http://d.org"}));
  EXPECT_EQ(found(built_in(), "[text](https://a.org/b) **https://c.org**"),
            (Texts{"https://a.org/b", "https://c.org"}));
  EXPECT_EQ(found(built_in(), "請看https://a.org/b。謝謝"), Texts{"https://a.org/b"});
  expect_none({"Either: // or", "http:// is a scheme", "the www. prefix"});
}

TEST(ProtectedParts, AddressesAndDomains) {
  expect_protected({"someone@example.com", "first.last+tag@mail.example.co.uk", "example.com", "github.com",
                    "example.com/a", "docs.example.is/x/y", "example.com:8080", "t.co/abc", "Goldstar.com"});
  expect_protected({"192.168.0.1", "10.0.0.1:8080", "10.0.0.0/8", "2001:db8::1", "fe80::1", "00:1a:2b:3c:4d:5e"});
  EXPECT_EQ(found(built_in(), "Write to me@x.org."), Texts{"me@x.org"});
  EXPECT_EQ(found(built_in(), "The github.com-based one"), Texts());
  expect_none({"This is the end.Next one.", "the end.next one", "e.g. this", "in the U.S. and", "at 5 a.m. on",
               "z.B. so", "d.h. so", "i.e. that", "yes.It is", "a @ b", "Wait...what"});
}

TEST(ProtectedParts, Paths) {
  expect_protected({"/usr/bin/x", "C:\\dir\\file.txt", "C:/dir/file", "src/main.cc", "README.md", "image.png",
                    "archive.tar.gz", "~/notes", "./run.sh", "../up/here", "\\\\server\\share", "photo.JPG", "Node.js",
                    "main.cc:12", "src/lib/x.zz", "Übersicht.pdf", "dir\\file.txt", ".github/workflows/ci.yml"});
  EXPECT_EQ(found(built_in(), "Open file.txt."), Texts{"file.txt"});
  expect_none({"and/or", "he/she/it", "km/h", "/ or", "the end.Md", "either/or.Then", "u.a.m. and", "w/o"});
}

TEST(ProtectedParts, Code) {
  expect_protected({"`code here`", "``a ` b``", "```x```"});
  expect_none({"`a' and `b'", "``so'' and ``this''", "a ` b", "` a and ` b", "`open"});
}

TEST(ProtectedParts, Placeholders) {
  expect_protected({"{name}",
                    "{0}",
                    "{}",
                    "{user.name}",
                    "{items[0]}",
                    "{0:>5}",
                    "{:.2f}",
                    "{!r}",
                    "{count, plural, one {# a} other {# b}}",
                    "{n, plural, =0 {no {x}} other {{n} of {m}}}",
                    "{when, date, short}",
                    "{{ user }}",
                    "{{name}}",
                    "{% if x %}",
                    "{# note #}",
                    "${HOME}",
                    "${a b}",
                    "%{name}",
                    "#{name}",
                    "$NAME",
                    "$MY_PATH2"});
  expect_protected({"%s", "%d", "%1$s", "%-5.2f", "%(x)d", "%(name)s", "%@", "%1$@", "%%", "%ld", "%02d", "%+d", "%*d",
                    "%name%", "%APP_DATA%", "%x"});
  EXPECT_EQ(found(built_in(), "%dpx by %s"), (Texts{"%d", "%s"}));
  EXPECT_EQ(found(built_in(), "{a}{b}"), Texts{"{a}{b}"});
  EXPECT_EQ(found(built_in(), "{ a {name}"), Texts{"{name}"});
  expect_none({"{see below}", "{1, 2, 3}", "{a, b}", "{name", "name}", "100 percent % sure", "$ and $a", "% of % in",
               "a %ig word", "{a, but}"});
}

TEST(ProtectedParts, PercentInProse) {
  EXPECT_EQ(found(built_in(), "100% sure, 5% discount, 20 % sparen"), (Texts{"100%", "5%", "20 %"}));
  EXPECT_EQ(found(built_in(), "50%的人"), Texts{"50%"});
  EXPECT_EQ(found(built_in(), "eine 100%ige Chance, 50%-Chance"), Texts());
  EXPECT_EQ(found(built_in(), "10–20 % and 2-3 km"), (Texts{"10–20 %", "2-3 km"}));
}

TEST(ProtectedParts, EntitiesAndTags) {
  expect_protected({"&amp;", "&#39;", "&nbsp;", "&#x27;", "<b>", "</b>", "<br/>", "<br />", "<x id=\"1\"/>", "<1>",
                    "<a title=\"a > b\">", "<!-- a -- b -->", "<!DOCTYPE html>"});
  EXPECT_EQ(found(built_in(), "A <b>bold</b> word"), (Texts{"<b>", "</b>"}));
  EXPECT_EQ(found(built_in(), "A <br><br> word"), Texts{"<br><br>"});
  expect_none({"a < b > c", "I <3 you", "x<y and y", "R&D;", "this & that; so", "&; <>", "<!-- open", "1 < 2 > 1"});
}

TEST(ProtectedParts, HashtagsAndMentions) {
  expect_protected({"#word", "#snake_case", "#Köln2024", "#00ff7f", "@someone", "@first.last", "@me@mastodon.social"});
  EXPECT_EQ(found(built_in(), "看#東京 吧"), Texts{"#東京"});
  expect_none({"We are #1", "# heading", "## heading", "C# code", "a#b", "5 @ 3", "No. #12"});
}

TEST(ProtectedParts, Quantities) {
  expect_protected({"3.5 km", "12 kg",      "25 °C", "-5 °C",      "100 %",  "5 GB",  "€12.50",  "$1,299.99", "10 €",
                    "50mm",   "120 km/h",   "5 m²",  "10 mg/ml",   "US$5",   "$5M",   "£10 000", "10 000 km", "5 USD",
                    "USD 5",  "1.299,99 €", "2.5s",  "10\u00A0kg", "5 €/kg", "−3 °C", "4 kWh"});
  EXPECT_EQ(found(built_in(), "It is 5 km."), Texts{"5 km"});
  EXPECT_EQ(found(built_in(), "每人5,000美元"), Texts{"5,000"});
  expect_none({"5 metres", "two km", "in the 1990s", "in 1999 s ním", "El 5 ha llegado", "à 10 l'équipe", "a 5-km run",
               "a 3.5-mile walk", "5 in the morning", "a 1,500-year-old tree"});
}

TEST(ProtectedParts, Numbers) {
  expect_protected({"v2.3.1",
                    "1.2.3",
                    "v2",
                    "1.2.3-rc1",
                    "2.0.0-beta.1",
                    "10:30",
                    "10:30:15",
                    "10:30am",
                    "16:9",
                    "2024-05-01",
                    "01.05.2024",
                    "5/1/2024",
                    "2024-05-01T10:30:00Z",
                    "1,299.99",
                    "3.14",
                    "12345",
                    "1,000,000",
                    "1.5e-10",
                    "1'000'000",
                    "+49 30 123456",
                    "(555) 123-4567",
                    "030 1234567",
                    "1-800-555-1234",
                    "978-3-16-148410-0"});
  EXPECT_EQ(found(built_in(), "on 02/13/2001 08:02 PM"), (Texts{"02/13/2001", "08:02"}));
  EXPECT_EQ(found(built_in(), "It is 3.14."), Texts{"3.14"});
  expect_none({"2 dogs", "in 1984", "the 1st, 2nd and 3rd", "3. Mai", "24/7", "1/2", "1914-1918", "from 5 to 10, 20",
               "Nos. 1, 2, 3", "a 10.000er", "2014/15"});
}

TEST(ProtectedParts, Identifiers) {
  expect_protected({"RTX-4090",
                    "snake_case_name",
                    "SCREAMING_CASE",
                    "iPhone",
                    "getValue",
                    "H2O",
                    "Fe2O3",
                    "F-16",
                    "x86",
                    "ISO-8859-1",
                    "MP3",
                    "3D",
                    "5G",
                    "run()",

                    "deadbeef01",
                    "550e8400-e29b-41d4-a716-446655440000",
                    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                    "1920x1080",
                    "COVID-19",
                    "1234567a"});
  expect_none({"don't",
               "T-shirt",
               "a 24-year-old",
               "McDonald and YouTube",
               "COVID-19-Pandemie",
               "an F-16-launched bomb",
               "Leser_innen",
               "the 1990s",
               "die 80er",
               "at 5pm",
               "emissions3",
               "__bold__",

               "_italic_",
               "Top-10",
               "Wi-Fi",
               "____",
               "A B C",
               "O'Neil",
               "ABC",
               "l'an",
               "5PM",
               "mid-1990s"});
}

TEST(ProtectedParts, OrdinarySentences) {
  expect_none({"Two dogs run across the green grass.", "Mr. Smith (born in 1950) didn't go; he stayed at home!",
               "\"Why?\" she asked: \"It's 3 o'clock...\"", "Die Schüler und/oder Lehrer gehen z.B. um 8 Uhr los.",
               "Il a dit : « C'est l'été » – et voilà.", "他在2016年說：“你好。”",
               "Привет, как дела? Всё хорошо, т.е. нет.", "On the 2nd of May, about 300 people came, i.e. half.",
               "A – B — C; D… E", ":-) and ;)", ""});
}

TEST(ProtectedParts, NeighboursOutsideAscii) {
  EXPECT_EQ(found(built_in(), "„README.md“"), Texts{"README.md"});
  EXPECT_EQ(found(built_in(), "用iPhone拍"), Texts{"iPhone"});
  EXPECT_EQ(found(built_in(), "éiPhone iPhoné"), Texts());
  EXPECT_EQ(found(built_in(), "é%s“{x}”…$5…"), (Texts{"%s", "{x}", "$5"}));
}

TEST(ProtectedParts, MergesPartsThatOverlapOrTouch) {
  const ProtectedPartFinder finder(true, "Acme|co.. b|<b>x");
  EXPECT_EQ(found(finder, "Acme code bar <b>x</b> %s%d"), (Texts{"Acme", "code b", "<b>x</b>", "%s%d"}));
  EXPECT_EQ(finder.find("Acme%s"), (std::vector<ProtectedPart>{{0, 6}}));
}

TEST(ProtectedParts, Pattern) {
  EXPECT_EQ(found(ProtectedPartFinder(false, "\\bQ\\p{Lu}+\\b"), "QKV and Q, QÄ %s"), (Texts{"QKV", "QÄ"}));
  EXPECT_EQ(found(ProtectedPartFinder(false, ""), "%s https://a.org"), Texts());
  EXPECT_EQ(found(ProtectedPartFinder(false, "x*"), "axxb€x"), (Texts{"xx", "x"}));
  EXPECT_EQ(found(ProtectedPartFinder(false, "€+|(?<=😀)."), "a€€ 😀é"), (Texts{"€€", "é"}));
}

// Returns the message of the error that f throws.
template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProtectedParts, InvalidPattern) {
  EXPECT_EQ(message([] { ProtectedPartFinder(true, "a(b"); }),
            "protect: the regular expression \"a(b\" is not supported: a ( without ), at byte 4");
  for (const char* pattern : {"a[b", "a{2,1}", "\\p{Nonsense}", "(\nx", "*"}) {
    const std::string error = message([&] { ProtectedPartFinder(true, pattern); });
    EXPECT_TRUE(error.starts_with("protect: the regular expression ")) << pattern;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_EQ(message([] { ProtectedPartFinder(true, "a\xFF"); }),
            "protect: byte 2 of the regular expression is not valid UTF-8");
}

std::string repeated(const std::string& unit, size_t size) {
  std::string text;
  while (text.size() < size) text += unit;
  return text;
}

// The first of these take exponential time where a matcher goes back; the last one reads the text again for each match.
TEST(ProtectedParts, NoPatternTakesLong) {
  const std::string text(20000, 'a');
  for (const char* pattern : {"(a+)+$b", "(a|aa)+$b", "a*a*a*b", "(?:a|b)*c", "a*b"}) {
    std::vector<ProtectedPart> parts;
    const auto find = [&] { parts = ProtectedPartFinder(false, pattern).find(text); };
    EXPECT_LT(testing::processor_seconds(find), 30) << pattern;
    EXPECT_EQ(parts, std::vector<ProtectedPart>()) << pattern;
  }
  const std::string error = message([&] { ProtectedPartFinder(false, "a(?:.*b)?").find(text); });
  EXPECT_TRUE(error.starts_with("protect: the regular expression \"a(?:.*b)?\" takes too long")) << error;
}

TEST(ProtectedParts, LongTextOfAPattern) {
  const ProtectedPartFinder finder(false, "\\w+@\\w+|b+");
  const std::string text = repeated("two dogs run bb x@y ", 1 << 16);
  EXPECT_EQ(finder.find(text).size(), 2 * (text.size() / 20));
}

TEST(ProtectedParts, NestedBraces) {
  const auto nested = [](size_t depth) {
    std::string text = "{x}";
    for (size_t i = 1; i < depth; i++) text = "{x, plural, other " + text + "}";
    return text;
  };
  EXPECT_EQ(found(built_in(), nested(64)), Texts{nested(64)});
  EXPECT_EQ(found(built_in(), nested(65)), Texts{nested(64)});
}

TEST(ProtectedParts, LongTextsTakeLinearTime) {
  const Texts units = {"{",      "{{", "}",     "(",        "a.",    "a/",     "a-",    "--a",     "%",
                       "&",      "&a", "1",     "1.",       "1,",    "1'111",  "1:",    "1-",      "1 ",
                       "1 111 ", "`",  "`` ` ", "<a ",      "<a \"", "<a '\"", "<!-- ", "http://", "www.",
                       "a@",     "@a", "#",     "#1",       "_",     "a_",     "-",     "$",       "$A",
                       "%(a",    "/",  "/a",    "\\",       "a\\",   ":",      "a:",    "+1 ",     "(555) ",
                       "é",      "a+", ")",     "http://(", "{a ",   "{%",     "v1.",   "€",       "1\u00A0111\u00A0",
                       "é.",     "a~", "%a",    "€1 ",      "A1-",   "0-"};
  for (const std::string& unit : units) {
    const std::string text = repeated(unit, 1 << 16) + "é";  // a letter, at which the last part fails
    EXPECT_LT(testing::processor_seconds([&] { built_in().find(text); }), 10) << unit;
  }
}

bool is_boundary(const std::string& text, size_t at) {
  return at == text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

TEST(ProtectedParts, ResultsAreInOrderAndOnCharacters) {
  std::mt19937 random(1);
  const Texts pieces = {"{",      "}",  "%", "$", "<",  ">",    "a",   "b1", "A", "1",     "12", "é",
                        "漢",     "€",  " ", " ", ".",  ",",    "-",   "_",  "/", "\\",    "@",  "#",
                        "`",      "\"", "'", ":", "//", "www.", "com", "(",  ")", "&amp;", ";",  "km",
                        "\u00A0", "°",  "😀", "+", "=",  "\n",   "~",   "s",  "d", "|"};
  const ProtectedPartFinder finder(true, "漢.|[é€]+");
  for (int i = 0; i < 20000; i++) {
    std::string text;
    for (size_t n = random() % 30; n > 0; n--) text += pieces[random() % pieces.size()];
    size_t done = 0;
    for (const ProtectedPart& part : finder.find(text)) {
      ASSERT_TRUE(part.begin < part.end && part.end <= text.size()) << text;
      ASSERT_TRUE(done == 0 ? part.begin >= done : part.begin > done) << text;
      ASSERT_TRUE(is_boundary(text, part.begin) && is_boundary(text, part.end)) << text;
      done = part.end;
    }
  }
}

}  // namespace
}  // namespace qkv
