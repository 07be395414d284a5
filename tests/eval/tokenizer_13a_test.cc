// Tokens as produced by sacrebleu.tokenizers.tokenizer_13a.Tokenizer13a()(line.rstrip()) of sacreBLEU 2.6.0.
#include "eval/tokenizer_13a.h"

#include <gtest/gtest.h>

namespace qkv {
namespace {

TEST(Tokenizer13a, PunctuationBecomesSeparateTokens) {
  EXPECT_EQ(tokenize_13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(tokenize_13a("(a)[b]{c}/d\\e~f^g_h`i|j=k+l*m#n$o%p@q;r:s?t"),
            "( a ) [ b ] { c } / d \\ e ~ f ^ g _ h ` i | j = k + l * m # n $ o % p @ q ; r : s ? t");
}

TEST(Tokenizer13a, ApostrophesStayInTheirWord) {
  EXPECT_EQ(tokenize_13a("don't 'quote' \"so\""), "don't 'quote' \" so \"");
}

TEST(Tokenizer13a, PeriodsAndCommasStayBetweenDigits) {
  EXPECT_EQ(tokenize_13a("1,000.5 and .5, 7, or 1.2."), "1,000.5 and . 5 , 7 , or 1.2 .");
  EXPECT_EQ(tokenize_13a("U.S. a.m. i.e., etc..."), "U . S . a . m . i . e . , etc . . .");
  EXPECT_EQ(tokenize_13a("a..b ,,c 5.. 6,,7"), "a . . b , , c 5 . . 6 , , 7");
}

TEST(Tokenizer13a, OnlyAsciiDigitsAreDigits) { EXPECT_EQ(tokenize_13a("é.é ٣.٤"), "é . é ٣ . ٤"); }

TEST(Tokenizer13a, HyphensAreSplitAfterADigit) {
  EXPECT_EQ(tokenize_13a("well-known 1990-2000 -5 20-year"), "well-known 1990 - 2000 -5 20 - year");
}

TEST(Tokenizer13a, FourEntitiesAreReplacedInOrder) {
  EXPECT_EQ(tokenize_13a("&quot;R&amp;D&quot; &lt;b&gt; &amp;lt; &amp;quot; &apos;"),
            "\" R & D \" < b > < & quot ; & apos ;");
}

TEST(Tokenizer13a, SkippedMarksAndBrokenLinesAreJoinedOnce) {
  EXPECT_EQ(tokenize_13a("<skipped>a<skip<skipped>ped>b"), "a < skipped > b");
  EXPECT_EQ(tokenize_13a("line-\nbreak end-\n"), "linebreak end-");
}

TEST(Tokenizer13a, OtherScriptsAreSplitOnlyAtWhiteSpace) {
  EXPECT_EQ(tokenize_13a("猫。です、 «é» 5€"), "猫。です、 «é» 5€");
  EXPECT_EQ(tokenize_13a("a\u00a0b\u3000c\u200bd\x1c"
                         "e"),
            "a b c\u200bd e");
}

TEST(Tokenizer13a, EmptyTextGivesNoTokens) {
  EXPECT_EQ(tokenize_13a(""), "");
  EXPECT_EQ(tokenize_13a(" \t\u2003"), "");
}

}  // namespace
}  // namespace qkv
