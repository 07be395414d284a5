#include "serve/http/multipart.h"

#include <gtest/gtest.h>

#include "serve/http/http_reply.h"

namespace qkv {
namespace {

using namespace std::string_literals;

const std::string kFormType = "multipart/form-data; boundary=B";

std::string form_part(const std::string& head, const std::string& bytes) {
  return "--B\r\n" + head + "\r\n\r\n" + bytes + "\r\n";
}

std::string named(const std::string& parameters) { return "Content-Disposition: form-data; " + parameters; }

// The message of the refusal; "" if there is none.
std::string refusal_of_form(const std::string& body, const std::string& type = kFormType) {
  try {
    parse_multipart(type, body);
    return "";
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status, 400);
    return error.what();
  }
}

// Fields and files as curl and browsers send them.
TEST(Multipart, FieldsAndFilesAreRead) {
  const std::string body =
      form_part(named("name=\"source\""), "en") +
      form_part(named("name=\"file\"; filename=\"a.html\"") + "\r\nContent-Type: text/HTML; charset=x",
                "<p>\r\n--A\r\n\0</p>"s) +
      form_part("x-other: 1\r\ncontent-DISPOSITION:form-data;name=\"q\\\"\\\\ é\"", "") +
      form_part(named("name=plain; filename=\"\""), "\r\n") + "--B--\r\nbehind";
  const std::vector<FormPart> parts = parse_multipart("Multipart/Form-Data; charset=utf-8; boundary=\"B\"", body);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].name, "source");
  EXPECT_EQ(parts[0].bytes, "en");
  EXPECT_EQ(parts[0].type, "text/plain");
  EXPECT_EQ(parts[0].filename, std::nullopt);
  EXPECT_EQ(parts[1].filename, "a.html");
  EXPECT_EQ(parts[1].type, "text/html");
  EXPECT_EQ(parts[1].bytes, "<p>\r\n--A\r\n\0</p>"s);
  EXPECT_EQ(parts[2].name, "q\"\\ é");
  EXPECT_EQ(parts[2].bytes, "");
  EXPECT_EQ(parts[3].name, "plain");
  EXPECT_EQ(parts[3].filename, "");
  EXPECT_EQ(parts[3].bytes, "\r\n");
}

TEST(Multipart, BoundariesMayHaveSpacesBehindAndEmptyPartsOneLineEnd) {
  const std::string body =
      "\r\n--B \t\r\n" + named("name=a") + "\r\n\r\n--B\r\n" + named("name=b") + "\r\n\r\nx\r\n--B--";
  const std::vector<FormPart> parts = parse_multipart(kFormType, body);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].bytes, "");
  EXPECT_EQ(parts[1].bytes, "x");
  EXPECT_TRUE(parse_multipart(kFormType, "--B--").empty());
}

TEST(Multipart, TypesAreRecognized) {
  EXPECT_TRUE(is_multipart("multipart/form-data"));
  EXPECT_TRUE(is_multipart(" Multipart/Form-Data ;boundary=x"));
  EXPECT_FALSE(is_multipart("multipart/form-datax; boundary=x"));
  EXPECT_FALSE(is_multipart(""));
}

TEST(Multipart, WrongBoundariesAreRefused) {
  for (const std::string parameters :
       {"", "; boundary=", "; boundary=\"a", "; boundary=\"a \"", "; boundary=\"\xC3\xA9\"", "; boundary=a; boundary=b",
        "; boundary=a b", "; boundary=a@", "; =a"})
    EXPECT_NE(refusal_of_form("--B--", "multipart/form-data" + parameters), "") << parameters;
  EXPECT_NE(refusal_of_form("--B--", "multipart/mixed; boundary=B"), "");
  const std::string longest(70, 'b');
  EXPECT_EQ(refusal_of_form("--" + longest + "--", "multipart/form-data; boundary=" + longest), "");
  EXPECT_EQ(refusal_of_form("--b" + longest + "--", "multipart/form-data; boundary=b" + longest),
            "multipart/form-data must have a boundary of 1 to 70 characters");
}

TEST(Multipart, BrokenBodiesAreRefused) {
  const std::string good = named("name=a");
  for (const std::string& body :
       std::vector<std::string>{"",
                                "x--B--",
                                "preamble\r\n--B--",
                                "--B",
                                "--B\r\n",
                                "--B\n",
                                "--Bx\r\n" + good + "\r\n\r\n\r\n--B--",
                                "--B\r\n" + good,
                                "--B\r\n" + good + "\r\n\r\nx",
                                "--B\r\n" + good + "\r\n\r\nx\r\n--B",
                                "--B\r\n" + good + "\r\n\r\nx\n--B--",
                                form_part("", "x") + "--B--",
                                form_part("X: y", "x") + "--B--",
                                form_part(named("filename=a"), "x") + "--B--",
                                form_part("Content-Disposition: attachment; name=a", "") + "--B--",
                                form_part(good + "\r\n" + good, "x") + "--B--",
                                form_part(named("name=\"a"), "x") + "--B--",
                                form_part(named("name=a; name=b"), "x") + "--B--",
                                form_part(named("name=\"a\"b"), "x") + "--B--",
                                form_part(named("name=\"\xFF\""), "x") + "--B--",
                                form_part(named(std::string("name=\"\0\"", 8)), "x") + "--B--",
                                form_part(good + "\r\nX y: 1", "x") + "--B--",
                                form_part(good + "\r\n folded", "x") + "--B--",
                                form_part(good + "\r\nX: a\nb", "x") + "--B--",
                                form_part(good + "\r\nContent-Transfer-Encoding: base64", "x") + "--B--"})
    EXPECT_NE(refusal_of_form(body), "") << body;
  EXPECT_EQ(refusal_of_form(form_part(good + "\r\nContent-Transfer-Encoding: 8BIT", "x") + "--B--"), "");
}

TEST(Multipart, PartsAndHeadersAreBounded) {
  const auto repeated = [](const std::string& text, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; i++) all += text;
    return all;
  };
  const std::string part = form_part(named("name=a"), "x");
  EXPECT_EQ(refusal_of_form(repeated(part, 64) + "--B--"), "");
  EXPECT_EQ(refusal_of_form(repeated(part, 65) + "--B--"), "a form must have at most 64 parts");
  EXPECT_EQ(refusal_of_form(form_part(named("name=a") + repeated("\r\nX: y", 15), "x") + "--B--"), "");
  const std::string refused =
      "a part of a form must have at most 16 headers of 4096 bytes, and an empty line behind them";
  EXPECT_EQ(refusal_of_form(form_part(named("name=a") + repeated("\r\nX: y", 16), "x") + "--B--"), refused);
  const std::string head = named("name=a") + "\r\nX: ";
  EXPECT_EQ(refusal_of_form(form_part(head + std::string(4096 + 2 - head.size(), 'y'), "x") + "--B--"), "");
  EXPECT_EQ(refusal_of_form(form_part(head + std::string(4096 + 3 - head.size(), 'y'), "x") + "--B--"), refused);
}

}  // namespace
}  // namespace qkv
