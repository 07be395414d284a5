#include "chat/jinja/parser/expression_parser.h"

#include <array>
#include <optional>

#include "core/fail.h"

namespace qkv::jinja {
namespace {

// Bounds of the syntax tree, which is read and freed recursively.
constexpr int kMaxNested = 100, kMaxOperators = 2000;

using syntax::Operator;
using syntax::Relation;

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::name:
    case Token::Kind::symbol:
      return fmt::format("'{}'", token.text.substr(0, 40));
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::real:
      return "a constant";
    case Token::Kind::end:
      return "the end of the template";
    default:
      return "the end of a tag";
  }
}

std::optional<Relation> relation_of(const Token& token) {
  static constexpr std::pair<std::string_view, Relation> kRelations[] = {
      {"==", Relation::equal},      {"!=", Relation::unequal}, {"<", Relation::less},
      {"<=", Relation::less_equal}, {">", Relation::greater},  {">=", Relation::greater_equal}};
  for (const auto& [symbol, relation] : kRelations)
    if (token.is(symbol)) return relation;
  return {};
}

ExpressionPtr text_constant(std::string text) {
  return syntax::constant(std::make_shared<const Text>(MarkedText::of_template(std::move(text)), nullptr));
}

}  // namespace

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxNested)
    fail("chat template: line {}: is nested more than {} deep", parser_.token().line, kMaxNested);
}
ExpressionParser::Nested::~Nested() {
  if (--parser_.depth_ == 0) parser_.operators_ = 0;
}

void ExpressionParser::count_operator() {
  if (++operators_ > kMaxOperators)
    fail("chat template: line {}: has an expression of more than {} operators", token().line, kMaxOperators);
}

bool ExpressionParser::skip(std::string_view symbol) {
  if (!token().is(symbol)) return false;
  take();
  return true;
}
bool ExpressionParser::skip_name(std::string_view name) {
  if (!token().is_name(name)) return false;
  take();
  return true;
}
void ExpressionParser::expect(std::string_view symbol) {
  if (!skip(symbol)) refuse(fmt::format("'{}'", symbol));
}
void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse(fmt::format("'{}'", name));
}
void ExpressionParser::expect(Token::Kind kind) {
  if (token().kind != kind) refuse("the end of the tag");
  take();
}
std::string ExpressionParser::name() {
  if (token().kind != Token::Kind::name) refuse("a name");
  return take().text;
}
void ExpressionParser::refuse(std::string_view wanted) const {
  fail("chat template: line {}: expected {}, found {}", token().line, wanted, describe(token()));
}

ExpressionPtr ExpressionParser::expression() {
  const Nested nested(*this);
  ExpressionPtr value = logical_or();
  while (skip_name("if")) {
    count_operator();
    ExpressionPtr test = logical_or();
    ExpressionPtr otherwise = skip_name("else") ? expression() : nullptr;
    value = syntax::conditional(std::move(test), std::move(value), std::move(otherwise));
  }
  return value;
}

bool ExpressionParser::ends_tuple() const {
  const Token::Kind kind = token().kind;
  return kind == Token::Kind::end_block || kind == Token::Kind::end_print || kind == Token::Kind::end ||
         token().is(")") || token().is("=") || token().is_name("in") || token().is_name("recursive");
}

ExpressionPtr ExpressionParser::tuple(bool conditional) {
  const Nested nested(*this);
  std::vector<ExpressionPtr> items;
  bool has_comma = false;
  while (!ends_tuple()) {
    items.push_back(conditional ? expression() : logical_or());
    if (!skip(",")) break;
    has_comma = true;
  }
  if (items.size() == 1 && !has_comma) return std::move(items.front());
  if (items.empty()) refuse("an expression");
  return syntax::sequence(SequenceKind::tuple, std::move(items));
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (skip_name("or")) {
    count_operator();
    left = syntax::logical(false, std::move(left), logical_and());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (skip_name("and")) {
    count_operator();
    left = syntax::logical(true, std::move(left), logical_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!skip_name("not")) return comparison();
  const Nested nested(*this);
  return syntax::logical_not(logical_not());
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr first = sum();
  std::vector<std::pair<Relation, ExpressionPtr>> others;
  for (;;) {
    std::optional<Relation> relation = relation_of(token());
    if (token().is_name("in")) relation = Relation::in;
    const bool is_not_in = token().is_name("not") && place_ < last() && tokens_[place_ + 1].is_name("in");
    if (is_not_in) relation = Relation::not_in;
    if (!relation) break;
    take();
    if (is_not_in) take();
    count_operator();
    others.emplace_back(*relation, sum());
  }
  return others.empty() ? std::move(first) : syntax::comparison(std::move(first), std::move(others));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (token().is("+") || token().is("-")) {
    count_operator();
    const Operator op = take().text == "+" ? Operator::add : Operator::subtract;
    left = syntax::binary(op, std::move(left), concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  std::vector<ExpressionPtr> parts;
  do parts.push_back(product());
  while (skip("~"));
  return parts.size() == 1 ? std::move(parts.front()) : syntax::concatenation(std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}};
  ExpressionPtr left = power();
  for (bool found = true; found;) {
    found = false;
    for (const auto& [symbol, op] : kOperators) {
      if (!skip(symbol)) continue;
      count_operator();
      left = syntax::binary(op, std::move(left), power());
      found = true;
      break;
    }
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (skip("**")) {
    count_operator();
    left = syntax::binary(Operator::power, std::move(left), unary());
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const Nested nested(*this);
  ExpressionPtr value;
  if (skip("-"))
    value = syntax::negative(unary(false));
  else if (skip("+"))
    value = syntax::positive(unary(false));
  else
    value = primary();
  value = postfix(std::move(value));
  return with_filter ? filters(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  if (token().is("(")) return parenthesized();
  if (token().is("[")) return list();
  if (token().is("{")) return dict();
  const Token found = token();
  switch (found.kind) {
    case Token::Kind::name:
      take();
      if (found.text == "true" || found.text == "True") return syntax::constant(true);
      if (found.text == "false" || found.text == "False") return syntax::constant(false);
      if (found.text == "none" || found.text == "None") return syntax::constant(None{});
      return syntax::variable(found.text);
    case Token::Kind::integer:
      take();
      return syntax::constant(found.integer);
    case Token::Kind::real:
      take();
      return syntax::constant(found.real);
    case Token::Kind::string: {
      std::string text;  // of adjacent constants
      while (token().kind == Token::Kind::string) text += take().text;
      return text_constant(std::move(text));
    }
    default:
      refuse("an expression");
  }
}

ExpressionPtr ExpressionParser::parenthesized() {
  expect("(");
  if (skip(")")) return syntax::sequence(SequenceKind::tuple, {});
  ExpressionPtr value = tuple();
  expect(")");
  return value;
}

ExpressionPtr ExpressionParser::list() {
  expect("[");
  std::vector<ExpressionPtr> items;
  while (!token().is("]")) {
    items.push_back(expression());
    if (!token().is("]")) expect(",");
  }
  expect("]");
  return syntax::sequence(SequenceKind::list, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
  expect("{");
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  while (!token().is("}")) {
    ExpressionPtr key = expression();
    expect(":");
    entries.emplace_back(std::move(key), expression());
    if (!token().is("}")) expect(",");
  }
  expect("}");
  return syntax::dict(std::move(entries));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  for (;;) {
    if (skip(".")) {
      value = token().kind == Token::Kind::integer ? syntax::item(std::move(value), syntax::constant(take().integer))
                                                   : syntax::attribute(std::move(value), name());
    } else if (token().is("[")) {
      value = subscript(std::move(value));
    } else if (token().is("(")) {
      value = syntax::call(std::move(value), arguments());
    } else {
      return value;
    }
    count_operator();
  }
}

// a[key], a[key, key] and a[begin:end:step]
ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  expect("[");
  std::array<ExpressionPtr, 3> parts;
  size_t colons = 0;
  if (!token().is(":")) parts[0] = tuple();
  while (colons < 2 && skip(":")) {
    colons++;
    if (!token().is(":") && !token().is("]")) parts[colons] = expression();
  }
  expect("]");
  if (colons == 0) return syntax::item(std::move(value), std::move(parts[0]));
  return syntax::slice(std::move(value), std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
}

ArgumentList ExpressionParser::arguments() {
  ArgumentList result;
  expect("(");
  while (!token().is(")")) {
    if (skip("**")) {
      if (result.dict) refuse("one dictionary of arguments");
      result.dict = expression();
    } else if (skip("*")) {
      if (result.list || result.dict) refuse("one list of arguments before the dictionary");
      result.list = expression();
    } else if (token().kind == Token::Kind::name && tokens_[place_ + 1].is("=")) {
      std::string key = name();
      expect("=");
      result.named.emplace_back(std::move(key), expression());
    } else {
      if (!result.named.empty() || result.dict) refuse("a keyword argument");
      result.positional.push_back(expression());
    }
    if (!token().is(")")) expect(",");
  }
  expect(")");
  return result;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value) {
  for (;;) {
    if (skip("|")) {
      std::string filter = name();
      while (skip(".")) filter += "." + name();
      value = syntax::filter(std::move(value), std::move(filter), token().is("(") ? arguments() : ArgumentList());
    } else if (skip_name("is")) {
      value = test(std::move(value));
    } else if (token().is("(")) {
      value = syntax::call(std::move(value), arguments());
    } else {
      return value;
    }
    count_operator();
  }
}

// Whether an argument without parentheses follows the name of a test.
bool ExpressionParser::begins_argument() const {
  switch (token().kind) {
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::real:
      return true;
    case Token::Kind::symbol:
      return token().is("[") || token().is("{");
    case Token::Kind::name:
      return !token().is_name("else") && !token().is_name("or") && !token().is_name("and") && !token().is_name("is") &&
             !token().is_name("if") && !token().is_name("not") && !token().is_name("in") &&
             !token().is_name("recursive");
    default:
      return false;
  }
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const bool negated = skip_name("not");
  std::string test = name();
  while (skip(".")) test += "." + name();
  ArgumentList given;
  if (token().is("(")) {
    given = arguments();
  } else if (begins_argument()) {
    given.positional.push_back(postfix(primary()));
  }
  ExpressionPtr result = syntax::test(std::move(value), std::move(test), std::move(given));
  return negated ? syntax::logical_not(std::move(result)) : std::move(result);
}

Target ExpressionParser::target() {
  const Nested nested(*this);
  std::vector<Target> parts;
  bool has_comma = false;
  for (;;) {
    Target part;
    if (skip("(")) {
      part = target();
      expect(")");
    } else {
      part.name = name();
      if (skip(".")) part.attribute = name();
    }
    parts.push_back(std::move(part));
    if (!skip(",")) break;
    has_comma = true;
    if (token().is_name("in") || token().is("=") || token().is(")")) break;
  }
  if (parts.size() == 1 && !has_comma) return std::move(parts.front());
  return {.parts = std::move(parts)};
}

}  // namespace qkv::jinja
