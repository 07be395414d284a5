// Parses expressions from tokens, with the precedence that they have in Jinja.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/parser/lexer.h"
#include "chat/jinja/syntax.h"

namespace qkv::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // a if b else c
  ExpressionPtr expression();
  // One expression, or several with commas between them, which are a tuple. conditional: "if" may follow.
  ExpressionPtr tuple(bool conditional = true);
  ArgumentList arguments();  // of a call, with the parentheses
  Target target();           // of an assignment: names, and attributes of namespaces

  const Token& token() const { return tokens_[place_]; }
  Token take() { return tokens_[place_ == last() ? place_ : place_++]; }
  bool skip(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect(std::string_view symbol);
  void expect_name(std::string_view name);
  void expect(Token::Kind kind);
  std::string name();
  [[noreturn]] void refuse(std::string_view wanted) const;

  // Counts what is nested, as long as the object lives.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    ~Nested();
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

 private:
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary();
  ExpressionPtr parenthesized();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr filters(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  bool begins_argument() const;
  bool ends_tuple() const;
  size_t last() const { return tokens_.size() - 1; }
  void count_operator();

  std::vector<Token> tokens_;
  size_t place_ = 0;
  int depth_ = 0;      // of expressions and blocks within each other
  int operators_ = 0;  // of the expression around the current one
};

}  // namespace qkv::jinja
