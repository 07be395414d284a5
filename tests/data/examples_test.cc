// Rows of labeled texts, read from tables and JSON lines.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>

#include "core/to_size.h"
#include "data/examples/example_file.h"
#include "data/examples/example_writer.h"
#include "data/examples/shuffled_rows.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::TempFile;
using Fields = std::vector<std::string>;
using Rows = std::vector<Fields>;

// Returns the fields of all rows, in order.
Rows rows_of(const ExampleFile& file) {
  std::vector<int64_t> order(to_size(file.rows()));
  std::iota(order.begin(), order.end(), int64_t{0});
  Rows rows;
  for (ExampleRow& row : file.read(order)) rows.push_back(std::move(row.fields));
  return rows;
}

Rows fields_of(const std::string& name, const std::string& content, const Fields& columns = {},
               ExampleArrays arrays = ExampleArrays::fields) {
  const TempFile file(name, content);
  return rows_of(ExampleFile(file.path(), columns, arrays));
}

Fields columns_of(const std::string& name, const std::string& content, const Fields& columns = {}) {
  const TempFile file(name, content);
  return ExampleFile(file.path(), columns).names();
}

// Returns the message of the Error of reading a file, from its name on.
std::string example_problem(const std::string& name, const std::string& content, const Fields& columns = {},
                            ExampleArrays arrays = ExampleArrays::fields) {
  const TempFile file(name, content);
  const std::string error = error_of([&] { ExampleFile(file.path(), columns, arrays); });
  const std::string directory = file.path().substr(0, file.path().size() - name.size());
  EXPECT_TRUE(error.starts_with(directory)) << error;
  EXPECT_EQ(error.find('\n'), error.npos) << error;
  return error.substr(std::min(directory.size(), error.size()));
}

TEST(ExampleFile, ReadsTablesWithoutAHeader) {
  const Rows expected = {{"A plane, taking off.", "An \"air\" plane.", "5.0"}, {"é", "", "0"}};
  EXPECT_EQ(fields_of("x.csv", "\"A plane, taking off.\",\"An \"\"air\"\" plane.\",5.0\r\n\r\né,,0"), expected);
  EXPECT_EQ(fields_of("x.csv", "\uFEFF\"A plane, taking off.\";\"An \"\"air\"\" plane.\";5.0\né;;0\n"), expected);
  EXPECT_EQ(fields_of("x.tsv", "A plane, taking off.\tAn \"air\" plane.\t5.0\né\t\t0\n"), expected);
  EXPECT_EQ(fields_of("x", "A plane, taking off.\tAn \"air\" plane.\t5.0\né\t\t0\n"), expected);
}

TEST(ExampleFile, ChoosesTheSeparatorByTheNameAndTheFirstLine) {
  EXPECT_EQ(fields_of("x.CSV", "a\tb,c\nd,e\n"), (Rows{{"a\tb", "c"}, {"d", "e"}}));
  EXPECT_EQ(fields_of("x.csv", "\"a,b\";\"c\"\nd;e,f\n"), (Rows{{"a,b", "c"}, {"d", "e,f"}}));
  EXPECT_EQ(fields_of("x.csv", "a;b,c;d\n"), (Rows{{"a;b", "c;d"}}));
  EXPECT_EQ(fields_of("x.tsv", "a,b\n;\n"), (Rows{{"a,b"}, {";"}}));
  EXPECT_EQ(fields_of("x.txt", "One, two; three.\nFour\n"), (Rows{{"One, two; three."}, {"Four"}}));
  EXPECT_EQ(fields_of("x.txt", "a\tb\nc\td\n"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(fields_of("x.data", "a;b\tc,d\n"), (Rows{{"a;b", "c,d"}}));
  EXPECT_EQ(fields_of("x.data", "a;b,\"c;d\"\n"), (Rows{{"a;b", "c;d"}}));
  EXPECT_EQ(fields_of("x.data", "\"a,b\";c\n"), (Rows{{"a,b", "c"}}));
  EXPECT_EQ(fields_of("x.data", "one\ntwo\n"), (Rows{{"one"}, {"two"}}));
  EXPECT_EQ(fields_of("x.data", "{\"text\": \"a\"}\n"), (Rows{{"a"}}));
}

TEST(ExampleFile, ChoosesColumnsByNameAndByNumber) {
  const std::string table = "id,title,body,score\n1,a,b,0.5\n2,c,d,1\n";
  EXPECT_EQ(fields_of("x.csv", table, {"score", "title"}), (Rows{{"0.5", "a"}, {"1", "c"}}));
  EXPECT_EQ(columns_of("x.csv", table, {"score", "title"}), (Fields{"score", "title"}));
  EXPECT_EQ(fields_of("x.csv", table, {"title", "3"}), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(columns_of("x.csv", table, {"title", "3"}), (Fields{"title", "body"}));
  EXPECT_EQ(fields_of("x.csv", table, {"body", "body"}), (Rows{{"b", "b"}, {"d", "d"}}));
  EXPECT_EQ(fields_of("x.tsv", "bad\t1\n1\t2\n", {"2", "1"}),
            (Rows{{"1", "bad"}, {"2", "1"}}));  // 1 is a number, no name
  EXPECT_EQ(columns_of("x.tsv", "bad\t1\n1\t2\n", {"2", "1"}), Fields());
}

TEST(ExampleFile, KnowsTheUsualNamesOfColumns) {
  EXPECT_EQ(fields_of("x.csv", "id,label,text2,text1\n1,yes,b,a\n"), (Rows{{"a", "b", "yes"}}));
  EXPECT_EQ(fields_of("x.csv", "id,label,text2,text1\n1,yes,b,a\n", {"4", "3"}), (Rows{{"a", "b"}}));
  EXPECT_EQ(columns_of("x.csv", "id,label,text2,text1\n1,yes,b,a\n"), (Fields{"text1", "text2", "label"}));
  EXPECT_EQ(fields_of("x.tsv", "negative_2\tanchor\tpositive\tnegative_1\nd\ta\tb\tc\n"), (Rows{{"a", "b", "d", "c"}}));
  EXPECT_EQ(fields_of("x.csv", "query,positive,negative,score\na,b,c,1.5\n"), (Rows{{"a", "b", "c", "1.5"}}));
  EXPECT_EQ(fields_of("x.csv", "sentence1,sentence2\na,b\n"), (Rows{{"a", "b"}}));
  EXPECT_EQ(fields_of("x.csv", "sentence1,sentence2,label,score\na,b,c,d\n"), (Rows{{"a", "b", "d"}}));
  EXPECT_EQ(fields_of("x.csv", "premise,hypothesis,label\na,b,c\n"), (Rows{{"a", "b", "c"}}));
  EXPECT_EQ(fields_of("x.csv", "query,text,relevance\na,b,2\n"), (Rows{{"a", "b", "2"}}));
  EXPECT_EQ(fields_of("x.tsv", "sentence\tlabel\nfine\t1\n"), (Rows{{"fine", "1"}}));
  EXPECT_EQ(fields_of("x.csv", "title,body\na,b\n"), (Rows{{"title", "body"}, {"a", "b"}}));  // not a known header
}

TEST(ExampleFile, ReadsJsonLines) {
  const std::string pairs =
      "{\"score\": 4.50, \"sentence1\": \"a \\\"b\\\"\\nc\", \"sentence2\": \"\\u00e9\", \"x\": {}}\n\n"
      "  {\"sentence2\": \"\", \"sentence1\": \"d\", \"score\": 1}\r\n";
  EXPECT_EQ(fields_of("x.jsonl", pairs), (Rows{{"a \"b\"\nc", "é", "4.5"}, {"d", "", "1"}}));
  EXPECT_EQ(fields_of("x.jsonl", pairs, {"score", "sentence2"}), (Rows{{"4.5", "é"}, {"1", ""}}));
  EXPECT_EQ(columns_of("x.jsonl", pairs), (Fields{"sentence1", "sentence2", "score"}));
  EXPECT_EQ(fields_of("x.json", "{\"text\": \"a\", \"label\": true}\n"), (Rows{{"a", "true"}}));
  EXPECT_EQ(fields_of("x.ndjson", "{\"1\": \"a\", \"text\": \"b\"}\n", {"1"}), (Rows{{"a"}}));
  EXPECT_EQ(
      fields_of("x.jsonl",
                "{\"anchor\": \"a\", \"positive\": \"b\", \"negative_10\": \"e\", \"negative_2\": \"d\", \"negative\": "
                "\"c\", \"negative_scores\": [1], \"label\": 1, \"score\": -0.5}\n"),
      (Rows{{"a", "b", "c", "d", "e", "-0.5"}}));
}

TEST(ExampleFile, FindsUsualNamesWithCapitalLettersAndOtherNamesOfScores) {
  EXPECT_EQ(fields_of("x.csv", "Text,Label\na,b\n"), (Rows{{"a", "b"}}));
  EXPECT_EQ(columns_of("x.csv", "Sentence1,Sentence2,Score\na,b,1\n"), (Fields{"Sentence1", "Sentence2", "Score"}));
  EXPECT_EQ(fields_of("x.csv", "sentence1,sentence2,similarity_score\na,b,1\n"), (Rows{{"a", "b", "1"}}));
  EXPECT_EQ(fields_of("x.csv", "sentence1,sentence2,similarity\na,b,1\n"), (Rows{{"a", "b", "1"}}));
  EXPECT_EQ(fields_of("x.csv", "text1,text2,relevance\na,b,1\n"), (Rows{{"a", "b", "1"}}));
  EXPECT_EQ(fields_of("x.csv", "query,positive,margin\na,b,1\n"), (Rows{{"a", "b", "1"}}));
  EXPECT_EQ(fields_of("x.csv", "anchor,positive,hard_negative\na,b,c\n"), (Rows{{"a", "b", "c"}}));
  EXPECT_EQ(fields_of("x.csv", "text,category\na,b\n"), (Rows{{"a", "b"}}));
  EXPECT_EQ(fields_of("x.jsonl", "{\"Query\": \"a\", \"Text\": \"b\", \"margin\": 2}\n"), (Rows{{"a", "b", "2"}}));
}

TEST(ExampleFile, ListsTheColumnsThatAreNotUsed) {
  const auto unused = [](const std::string& name, const std::string& content, const Fields& columns) {
    const TempFile file(name, content);
    return ExampleFile(file.path(), columns).unused();
  };
  EXPECT_EQ(unused("x.csv", "id,text,label\n1,a,b\n", {}), Fields{"id"});
  EXPECT_EQ(unused("x.csv", "id,text,label\n1,a,b\n", {"3", "2"}), Fields{"id"});
  EXPECT_EQ(unused("x.csv", "1,a,b\n", {"3", "2"}), Fields());
  EXPECT_EQ(unused("x.jsonl", "{\"text\": \"a\", \"label\": 1, \"id\": 2}\n", {}), Fields{"id"});
}

TEST(ExampleFile, ElementsOfAnArrayAreFields) {
  const std::string text =
      "{\"query\": \"a\", \"positive\": \"b\", \"negatives\": [\"c\", \"d\"]}\n"
      "{\"query\": \"e\", \"positive\": [\"f\"], \"negatives\": [\"g\", 5]}\n";
  EXPECT_EQ(fields_of("x.jsonl", text), (Rows{{"a", "b", "c", "d"}, {"e", "f", "g", "5"}}));
  EXPECT_EQ(columns_of("x.jsonl", text), (Fields{"query", "positive", "negatives"}));
}

TEST(ExampleFile, AnArrayInTheLastColumnMayBeOneField) {
  const std::string text =
      "{\"text\": \"a\", \"labels\": [\"x, y\", \"\\\"z\"]}\n{\"text\": \"b\", \"labels\": []}\n"
      "{\"text\": \"c\", \"labels\": \"x\"}\n{\"text\": \"d\", \"labels\": [1, true]}\n";
  EXPECT_EQ(fields_of("x.jsonl", text, {}, ExampleArrays::last),
            (Rows{{"a", "[\"x, y\",\"\\\"z\"]"}, {"b", "[]"}, {"c", "x"}, {"d", "[1,true]"}}));
}

TEST(ExampleFile, InvalidTablesAreRejected) {
  for (const auto& [name, content, columns, expected] :
       std::initializer_list<std::tuple<std::string, std::string, Fields, std::string>>{
           {"x.csv", "", {}, "x.csv: contains no rows"},
           {"x.csv", "\n\n", {}, "x.csv: contains no rows"},
           {"x.csv", "text,label\n\n", {}, "x.csv: contains no rows after its header"},
           {"x.csv", "a,b\nc\n", {}, "x.csv:2: expected 2 columns as in the first line (found 1)"},
           {"x.csv", "\na,b\n\nc,d,e\n", {"1"}, "x.csv:4: expected 2 columns as in the first line (found 3)"},
           {"x.tsv", "a\tb\r\nc\td\t\r\n", {}, "x.tsv:2: expected 2 columns as in the first line (found 3)"},
           {"x.csv",
            "a,b\n\"c\nd\",e\n",
            {},
            "x.csv:2: a quoted field is not closed on its line; give texts with line breaks as JSON lines"},
           {"x.csv",
            "a,\"b\n",
            {},
            "x.csv:1: a quoted field is not closed on its line; give texts with line breaks as JSON lines"},
           {"x.csv",
            "a,b\nc \"d\",e\n",
            {},
            "x.csv:2: quote inside unquoted field 1 (\"c \\\"d\\\"\"); quote the field and double its quotes"},
           {"x.csv", "a,b\n\"c\"d,e\n", {}, "x.csv:2: text after the closing quote of field 1"},
           {"x.csv", "a,b\n", {"1", "3"}, "x.csv:1: no column \"3\" among the 2 columns"},
           {"x.csv", "a,b\n", {"0"}, "x.csv:1: no column \"0\" among the 2 columns"},
           {"x.csv",
            "a,b\n",
            {"99999999999999999999999"},
            "x.csv:1: no column \"99999999999999999999999\" among the 2 columns"},
           {"x.csv", "\na,b\n", {"score"}, "x.csv:2: no column \"score\" in the first line (found \"a\", \"b\")"},
           {"x.csv", "a,b\n", {""}, "x.csv:1: no column \"\" in the first line (found \"a\", \"b\")"},
           {"x.csv",
            std::string(60, 'a') + "," + std::string(60, 'b') + ",c\n",
            {"-1"},
            "x.csv:1: no column \"-1\" in the first line (found \"" + std::string(60, 'a') + "\", \"" +
                std::string(60, 'b') + "\", ...)"},
           {"x.tsv",
            "a\tb\nc\xFF\td\n",
            {},
            "x.tsv:2: byte 2 of the line is not valid UTF-8 (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" makes it so)"}})
    EXPECT_EQ(example_problem(name, content, columns), expected);
}

TEST(ExampleFile, InvalidJsonLinesAreRejected) {
  const auto error = [](const std::string& content, const Fields& columns = {},
                        ExampleArrays arrays = ExampleArrays::fields) {
    return example_problem("x.jsonl", content, columns, arrays);
  };
  const std::string first = "{\"text\": \"a\", \"label\": \"b\"}\n";
  EXPECT_EQ(error("\n"), "x.jsonl: contains no rows");
  EXPECT_EQ(error("[\n{\"text\": \"a\"}\n]\n"),
            "x.jsonl:1: expected one JSON object per line (found an array; \"jq -c .[] FILE\" converts it)");
  EXPECT_EQ(error(first + "[1]\n"), "x.jsonl:2: expected a JSON object (found an array)");
  EXPECT_EQ(error("\"text\"\n"), "x.jsonl:1: expected a JSON object (found a string)");
  EXPECT_EQ(error("text\tlabel\n", {"text"}).substr(0, 33), "x.jsonl:1: not valid JSON at byte");
  EXPECT_EQ(error(first + "{\"text\": \"c\"}\n"), "x.jsonl:2: the object has no member \"label\"");
  EXPECT_EQ(error(first + "{\"text\": \"c\", \"label\": null}\n"),
            "x.jsonl:2: \"label\" must be a string, a number, a boolean or an array of these (is null)");
  EXPECT_EQ(error(first + "{\"text\": {}, \"label\": 1}\n"),
            "x.jsonl:2: \"text\" must be a string, a number, a boolean or an array of these (is object)");
  EXPECT_EQ(error("{\"text\": [\"a\"], \"label\": 1}\n", {}, ExampleArrays::last),
            "x.jsonl:1: \"text\" must be a string, a number or a boolean (is array)");
  EXPECT_EQ(error("{\"text\": \"a\", \"label\": [1, null]}\n", {}, ExampleArrays::last),
            "x.jsonl:1: element 2 of \"label\" must be a string, a number or a boolean (is null)");
  EXPECT_EQ(error("{\"a\": [[]]}\n", {"a"}),
            "x.jsonl:1: element 1 of \"a\" must be a string, a number or a boolean (is array)");
  EXPECT_EQ(error("{\"a\": []}\n", {"a"}), "x.jsonl:1: the row has no fields, only empty arrays");
  EXPECT_EQ(error("{\"a\": [1, 2]}\n\n{\"a\": [1]}\n", {"a"}),
            "x.jsonl:3: expected 2 fields as in the first row (found 1)");
  EXPECT_EQ(error("{\"title\": \"a\", \"body\": \"b\"}\n"),
            "x.jsonl:1: cannot determine which members are the columns; set columns to their names (found \"body\", "
            "\"title\")");
  EXPECT_EQ(error("{}\n"),
            "x.jsonl:1: cannot determine which members are the columns; set columns to their names (found none)");
  EXPECT_EQ(error("{\"text\": 1, \"text\": 2}\n"), "x.jsonl:1: the name \"text\" stands twice in one object");
  EXPECT_EQ(error("{\"text\": 1e999}\n"), "x.jsonl:1: not valid JSON at byte 14: a number beyond the range of double");
}

TEST(ExampleFile, AFileThatIsAbsentIsNamed) {
  testing::expect_contains(error_of([] { ExampleFile("/nowhere/x.csv", {}); }), "/nowhere/x.csv: ");
}

// Row r of a table with a header and an empty line before every third row.
std::string table_of(int64_t rows) {
  std::string text = "\ntext,label\n";
  for (int64_t row = 0; row < rows; row++)
    text +=
        (row % 3 == 2 ? "\r\n" : "") + std::string("row ") + std::to_string(row) + "," + std::to_string(row % 2) + "\n";
  return text;
}

TEST(ExampleFile, ReadsAnyRowsInAnyOrder) {
  const TempFile table("x.csv", table_of(1000));
  const ExampleFile file(table.path(), {});
  ASSERT_EQ(file.rows(), 1000);
  EXPECT_EQ(file.fields(), 2);
  EXPECT_EQ(file.path(), table.path());
  const auto check = [&](const std::vector<int64_t>& rows) {
    const std::vector<ExampleRow> read = file.read(rows);
    ASSERT_EQ(read.size(), rows.size());
    for (size_t i = 0; i < rows.size(); i++) {
      EXPECT_EQ(read[i].fields, (Fields{"row " + std::to_string(rows[i]), std::to_string(rows[i] % 2)}));
      EXPECT_EQ(read[i].line, 3 + rows[i] + (rows[i] + 1) / 3);
      EXPECT_EQ(file.place(read[i]), table.path() + ":" + std::to_string(read[i].line));
    }
  };
  check(shuffled_rows(1000, 1, 0));
  check({999, 0, 999, 500, 0});
  check({});
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 3; seed++) threads.emplace_back([&, seed] { check(shuffled_rows(1000, seed, 1)); });
  for (std::thread& thread : threads) thread.join();
}

TEST(ExampleFile, SkipsChunksOfEmptyLines) {
  const std::string empty(1000, '\n');
  EXPECT_EQ(fields_of("x.tsv", empty + "text\tlabel\n" + empty + "a\tb\n" + empty + "c\td" + empty),
            (Rows{{"a", "b"}, {"c", "d"}}));
}

TEST(ExampleFile, ReadsCompressedTables) {
  const std::string text = table_of(100);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  EXPECT_EQ(fields_of("x.csv.zst", packed), fields_of("x.csv", text));
}

TEST(ExampleFile, AChangedFileIsNoticed) {
  const TempFile table("x.csv", table_of(1000));
  const ExampleFile file(table.path(), {});
  const std::string text = testing::slurp(table.path());
  testing::spill(table.path(), text.substr(0, text.size() - 4) + "9,9\n");
  EXPECT_EQ(file.read(std::vector<int64_t>{0})[0].fields[0], "row 0");
  EXPECT_EQ(error_of([&] { file.read(std::vector<int64_t>{999}); }),
            table.path() + ": lines 1281 to 1335 have changed since they were first read");
}

TEST(ExampleFile, TheFingerprintIsThatOfRowsAndColumns) {
  const TempFile table("x.csv", table_of(10)), same("x.csv", table_of(10)), other("x.csv", table_of(11));
  const auto fingerprint = [](const TempFile& file, const Fields& columns) {
    return ExampleFile(file.path(), columns).fingerprint();
  };
  EXPECT_EQ(fingerprint(table, {}), fingerprint(same, {}));
  EXPECT_EQ(fingerprint(table, {}), fingerprint(table, {"text", "label"}));
  EXPECT_NE(fingerprint(table, {}), fingerprint(table, {"label", "text"}));
  EXPECT_NE(fingerprint(table, {}), fingerprint(other, {}));
}

TEST(ExampleFile, ReadsPublishedData) {
  const std::string shared = QKV_SHARED_DIR "/data/";
  if (!std::filesystem::exists(shared + "stsb/train.csv")) GTEST_SKIP() << "skipped: ../shared not present";
  const ExampleFile pairs(shared + "stsb/train.csv", {}), texts(shared + "sst2/dev.tsv", {});
  EXPECT_EQ(pairs.rows(), 5749);
  EXPECT_EQ(pairs.fields(), 3);
  EXPECT_EQ(rows_of(pairs)[0], (Fields{"A plane is taking off.", "An air plane is taking off.", "5.0"}));
  for (const Fields& row : rows_of(pairs)) EXPECT_TRUE(std::stod(row[2]) >= 0 && std::stod(row[2]) <= 5);
  EXPECT_EQ(texts.rows(), 872);
  EXPECT_EQ(texts.fields(), 2);
  EXPECT_EQ(rows_of(texts)[0], (Fields{"one long string of cliches", "0"}));
}

TEST(ShuffledRows, AreAFunctionOfSeedAndEpoch) {
  const std::vector<int64_t> order = shuffled_rows(100, 1, 0);
  EXPECT_EQ(order, shuffled_rows(100, 1, 0));
  EXPECT_NE(order, shuffled_rows(100, 1, 1));
  EXPECT_NE(order, shuffled_rows(100, 2, 0));
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  EXPECT_NE(order, sorted);
  for (int64_t row = 0; row < 100; row++) EXPECT_EQ(sorted[to_size(row)], row);
  EXPECT_EQ(shuffled_rows(0, 1, 0), std::vector<int64_t>());
}

// Returns the file that a writer makes of rows of an anchor, a positive and two negatives.
std::string written(const std::string& name, const Rows& rows) {
  const ExampleWriter writer(name, {"anchor", "positive", "negative_1", "negative_2"});
  std::string text = writer.header();
  for (const Fields& row : rows) text += writer.line(std::vector<std::string_view>(row.begin(), row.end()), "rows:7");
  return text;
}

TEST(ExampleWriter, WritesRowsThatAreReadAgain) {
  const Rows plain = {{"a", "b \"c\" d", "e, f; g", " h "}, {"\"", "é", "\\", "#"}};
  for (const char* name : {"x.csv", "x.tsv", "x.jsonl", "x.json", "x.NDJSON", "x.Csv"})
    EXPECT_EQ(fields_of(name, written(name, plain)), plain) << name;
  const Rows tabs = {{"a\tb", "c\rd", "e\r", "f\r"}}, lines = {{"a\nb", "c\r\nd", "\t", std::string("\0", 1)}};
  EXPECT_EQ(fields_of("x.csv", written("x.csv", tabs)), tabs);
  EXPECT_EQ(fields_of("x.jsonl", written("x.jsonl", lines)), lines);
  EXPECT_EQ(written("x.csv", {{"a", "b,c", "d", "e"}}), "anchor,positive,negative_1,negative_2\na,\"b,c\",d,e\n");
  EXPECT_EQ(written("x.jsonl", {{"a", "b", "c", "d"}}),
            "{\"anchor\":\"a\",\"positive\":\"b\",\"negative_1\":\"c\",\"negative_2\":\"d\"}\n");
}

TEST(ExampleWriter, RefusesWhatAFormatCannotHold) {
  const auto problem = [](const std::string& name, const std::string& text) {
    return error_of([&] { written(name, {{"a", "b", "c", text}}); });
  };
  EXPECT_EQ(problem("x.csv", "d\ne"),
            "rows:7: a text has a line break, which x.csv cannot hold; write rows to a name that ends in .jsonl");
  for (const char* text : {"d\ne", "d\te", "d\r"})
    EXPECT_EQ(problem("x.tsv", text),
              "rows:7: a text has a line break or a tab, which x.tsv cannot hold; write rows to a name that ends in "
              ".jsonl");
  for (const char* name : {"x", "x.txt", "x.csv.gz", "csv"})
    EXPECT_EQ(problem(name, "d"),
              std::string(name) + ": the name of a file of rows to write must end in .csv, .tsv or .jsonl");
}

TEST(ExampleFile, NamesFieldsInErrors) {
  const TempFile table("x.csv", "sentence1,sentence2\na,b\n"), rows("x.tsv", "a\tb\n");
  const TempFile arrays("x.jsonl", R"({"anchor": "a", "positive": "b", "negatives": ["c", "d"]})");
  EXPECT_EQ(ExampleFile(table.path(), {}).name_of_field(1), "column \"sentence2\"");
  EXPECT_EQ(ExampleFile(rows.path(), {}).name_of_field(1), "column 2");
  EXPECT_EQ(ExampleFile(arrays.path(), {}).name_of_field(3), "field 4");
}

}  // namespace
}  // namespace qkv
