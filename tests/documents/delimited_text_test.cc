#include <gtest/gtest.h>

#include "tests/documents/string_parts.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::StringDocument;
using Texts = std::vector<std::string>;

std::string marked(std::string_view format, const std::string& text, Texts columns = {}) {
  return StringDocument(format, text, std::move(columns)).marked();
}

TEST(CsvFiles, CellsAreTranslated) {
  EXPECT_EQ(marked("csv", "\uFEFFid,Name,text\r\n1,,\"A, b\"\r\n\r\n2,Two words,=A1&\" x\"\n3,https://a.b/,\"12\""),
            "\uFEFF«id»,«Name»,«text»\r\n1,,\"«A, b»\"\r\n\r\n2,«Two words»,=A1&\" x\"\n3,https://a.b/,\"12\"");
  EXPECT_EQ(marked("csv", ""), "");
  EXPECT_EQ(marked("csv", "One\rtwo"), "«One»\r«two»");
}

TEST(CsvFiles, TheFirstRowSaysTheSeparator) {
  EXPECT_EQ(marked("csv", "a;b, c;d\ne, f;g\n"), "«a»;\"«b, c»\";«d»\n\"«e, f»\";«g»\n");
  EXPECT_EQ(marked("csv", "a\tb\nc, d\te\n"), "«a»\t«b»\n\"«c, d»\"\t«e»\n");
  EXPECT_EQ(marked("csv", "\"a;b;c\",d\n"), "\"«a;b;c»\",«d»\n");
  EXPECT_EQ(marked("csv", "\"a;\"\";b\",c 2\";d,e\n"), "\"«a;\"\";b»\",\"«c 2\"\";d»\",«e»\n");
  EXPECT_EQ(marked("csv", "sep=;\r\na, b, c;d\n"), "sep=;\r\n\"«a, b, c»\";«d»\n");
  EXPECT_EQ(marked("csv", "sep=|\na|b\n"), "sep=|\n«a»|«b»\n");
  EXPECT_EQ(StringDocument("csv", "a,b\n").with({"c|d|e", "f"}), "\"c|d|e\",f\n");
  EXPECT_EQ(marked("csv", "name|text\nx1|a, b\n"), "«name»|«text»\nx1|\"«a, b»\"\n");
}

TEST(CsvFiles, TranslationsGetTheQuotesThatTheyNeed) {
  const StringDocument document("csv", "One,\"Two \"\"2\"\"\",\" Three\nlines\r\n\", Four \n");
  EXPECT_EQ(document.parts(), (Texts{"One", "Two \"2\"", "Three\nlines", "Four"}));
  EXPECT_EQ(document.with({"a;b", "c\"d", "e\nf", "g"}), "\"a;b\",\"c\"\"d\",\" e\nf\r\n\",\" g \"\n");
  EXPECT_EQ(document.with({"a,b", "c", "e", "g\"h"}), "\"a,b\",\"c\",\" e\r\n\",\" g\"\"h \"\n");
  for (const char* quoted : {" a", "a ", "a\nb", "a\rb"})
    EXPECT_TRUE(document.with({quoted, "c", "e", "g"}).starts_with("\"" + std::string(quoted) + "\",")) << quoted;
  EXPECT_EQ(document.with({"\"a", "", "", ""}), "\"\"\"a\",\"\",\" \r\n\",\"  \"\n");
  EXPECT_EQ(document.with(document.parts()), document.document.texts()[0].bytes);
  EXPECT_EQ(StringDocument("csv", "a;b\n").with({"c,d", "e;f"}), "\"c,d\";\"e;f\"\n");
  EXPECT_EQ(StringDocument("csv", "a 3\" pipe,b").with({"c 3\" pipe", "d"}), "\"c 3\"\" pipe\",d");
}

TEST(CsvFiles, ColumnsAreChosenByNameOrNumber) {
  const std::string text = "id,\"Title\",Text\nOne,two,three\nfour,five,six,seven\neight\n";
  EXPECT_EQ(marked("csv", text, {"Title"}), "id,\"Title\",Text\nOne,«two»,three\nfour,«five»,six,seven\neight\n");
  EXPECT_EQ(marked("csv", text, {"1", "Text"}),
            "id,\"Title\",Text\n«One»,two,«three»\n«four»,five,«six»,seven\n«eight»\n");
  EXPECT_EQ(marked("csv", text, {"3"}), "id,\"Title\",Text\nOne,two,«three»\nfour,five,«six»,seven\neight\n");
  EXPECT_EQ(marked("csv", "2024,a\nOne,two\n", {"2024"}), "2024,a\n«One»,two\n");
  EXPECT_EQ(error_of("csv", text, {"Texts"}),
            "unknown column \"Texts\" (columns: \"id\", \"Title\", \"Text\", or a number from 1 to 3)");
  for (const char* column : {"0", "4", "-1", "", "99999999999999999999"})
    EXPECT_NE(error_of("csv", text, {column}), "") << column;
}

TEST(CsvFiles, BadQuotesAreRefused) {
  EXPECT_EQ(error_of("csv", "a,b\n\nc,\"d\ne"), "line 3: the quoted cell is not closed");
  EXPECT_EQ(error_of("csv", "a,b\n\"c\" d,e"), "line 2: a quoted cell must end with its quote (found \" \")");
  EXPECT_EQ(error_of("csv", "\""), "line 1: the quoted cell is not closed");
}

// As a quoted cell, "b;c" would hide a separator, and whether it does depends on the text of the cells around it.
TEST(CsvFiles, AQuoteAfterAnotherSeparatorInTheFirstRowIsRefused) {
  EXPECT_EQ(error_of("csv", "a\tb\tx,\"c\td\n"),
            "the separator is not known: in the first row a quote follows \",\" (expected quotes around the cell "
            "\"x,\\\"c\", or a first line that names the separator, such as sep=,)");
  for (const char* text : {"\t\t,\",3\n,\"f\no\"\n", "a,b;\"c\n", "a,b;\"c\";d,e", "a,b\t\"c,d\"\n", "a;=B1,\"x\";c;d"})
    EXPECT_TRUE(error_of("csv", text).starts_with("the separator is not known: ")) << text;
  EXPECT_EQ(marked("csv", "sep=\t\na\tx,\"b\tc\n"), "sep=\t\n«a»\t\"«x,\"\"b»\"\t«c»\n");
  EXPECT_EQ(marked("csv", "a,b\nc;\"d,e\n"), "«a»,«b»\n\"«c;\"\"d»\",«e»\n");
  EXPECT_EQ(marked("csv", "a,b 3\",\"c;\"\"d\"\n"), "«a»,\"«b 3\"\"»\",\"«c;\"\"d»\"\n");
}

TEST(TsvFiles, CellsAreBetweenTabs) {
  EXPECT_EQ(marked("tsv", "Hello, world; yes\n\"A\tb\"\tc\r\n"), "«Hello, world; yes»\n\"«A\tb»\"\t«c»\r\n");
  EXPECT_EQ(StringDocument("tsv", "One\ttwo\n").with({"a\tb", "c, d"}), "\"a\tb\"\tc, d\n");
  EXPECT_EQ(StringDocument("tsv", "One\ttwo\n").with({"a \"b\"", "\"c\" d"}), "a \"b\"\t\"\"\"c\"\" d\"\n");
  EXPECT_EQ(marked("tsv", "id\ttext\n1\tOne\n", {"text"}), "id\ttext\n1\t«One»\n");
}

TEST(TsvFiles, QuotesThatEncloseNoCellAreText) {
  const StringDocument document("tsv", "\"One\"\ttwo\n\"Three\" he said\t\"four\n");
  EXPECT_EQ(document.parts(), (Texts{"\"One\"", "two", "\"Three\" he said", "\"four"}));
  EXPECT_EQ(document.with({"\"a\"", "b\tc\nd", "e", "f"}), "\"a\"\tb c d\ne\tf\n");
}

// Quotes that begin cells and enclose none must not be looked through again and again.
TEST(TsvFiles, ManyQuotesTakeLinearTime) {
  for (const std::string cell : {"\"a\t", "\"\"\"a\t", "\"\"a\t", "a\"\"\n\"", "\"\"\"\"\t", "\""}) {
    std::string text;
    while (text.size() < 400'000) text += cell;
    error_of("tsv", text);
    error_of("csv", text);
  }
}

}  // namespace
}  // namespace qkv
