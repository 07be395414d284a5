#include "chat/jinja/parser/parser.h"

#include <algorithm>
#include <initializer_list>

#include "chat/jinja/parser/expression_parser.h"
#include "core/fail.h"
#include "text/unicode.h"

namespace qkv::jinja {
namespace {

constexpr size_t kMaxSource = 128 << 10;  // bytes

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Block take_template() {
    Block block = this->block({});
    if (token().kind != Token::Kind::end) refuse("the end of the template");
    return block;
  }

 private:
  // Parses statements up to a tag of one of these names, of which the name is the next token; without names, to the
  // end.
  Block block(std::initializer_list<std::string_view> ends) {
    const Nested nested(*this);
    Block result;
    while (token().kind != Token::Kind::end) {
      if (token().kind == Token::Kind::text) {
        result.statements.push_back(syntax::text(take().text));
      } else if (token().kind == Token::Kind::begin_print) {
        take();
        result.statements.push_back(syntax::print(tuple()));
        expect(Token::Kind::end_print);
      } else {
        expect(Token::Kind::begin_block);
        if (std::ranges::any_of(ends, [&](std::string_view end) { return token().is_name(end); })) return result;
        if (StatementPtr statement = this->statement()) result.statements.push_back(std::move(statement));
      }
    }
    if (ends.size() > 0) refuse(fmt::format("'{}'", *(ends.end() - 1)));
    return result;
  }

  // Parses a block up to a tag of this name, and the tag.
  Block block_to(std::string_view end) {
    Block result = block({end});
    expect_name(end);
    expect(Token::Kind::end_block);
    return result;
  }

  StatementPtr statement() {
    const Token tag = token();
    const std::string kind = name();
    if (kind == "if") return parse_if();
    if (kind == "for") return parse_for();
    if (kind == "set") return parse_set();
    if (kind == "macro") return parse_macro();
    if (kind == "call") return parse_call();
    if (kind == "filter") return parse_filter();
    if (kind == "with") return parse_with();
    if (kind == "generation") {
      expect(Token::Kind::end_block);
      return syntax::capture({}, false, {}, block_to("endgeneration"));
    }
    if (kind == "break" || kind == "continue") {
      if (loops_ == 0) fail("chat template: line {}: {} is outside of a loop", tag.line, kind);
      expect(Token::Kind::end_block);
      return syntax::leave_loop(kind == "break" ? Flow::end : Flow::skip);
    }
    for (const char* known : {"include", "import", "from", "extends", "block", "autoescape", "do", "trans"})
      if (kind == known) fail("chat template: line {}: {} is not supported", tag.line, kind);
    fail("chat template: line {}: unknown tag '{}'", tag.line, kind.substr(0, 40));
  }

  StatementPtr parse_if() {
    std::vector<std::pair<ExpressionPtr, Block>> branches;
    Block otherwise;
    for (;;) {
      ExpressionPtr test = tuple(false);
      expect(Token::Kind::end_block);
      Block then = block({"elif", "else", "endif"});
      branches.emplace_back(std::move(test), std::move(then));
      if (skip_name("elif")) continue;
      if (skip_name("else")) {
        expect(Token::Kind::end_block);
        otherwise = block({"endif"});
      }
      expect_name("endif");
      expect(Token::Kind::end_block);
      return syntax::choice(std::move(branches), std::move(otherwise));
    }
  }

  StatementPtr parse_for() {
    syntax::ForParts parts;
    if (token().is_name("loop")) refuse("another name than that of the loop's own variable");
    parts.target = target();
    expect_name("in");
    parts.items = tuple(false);
    if (skip_name("if")) parts.condition = expression();
    if (token().is_name("recursive")) fail("chat template: line {}: recursive loops are not supported", token().line);
    expect(Token::Kind::end_block);
    loops_++;
    parts.block = block({"else", "endfor"});
    loops_--;
    if (skip_name("else")) {
      expect(Token::Kind::end_block);
      parts.otherwise = block({"endfor"});
    }
    expect_name("endfor");
    expect(Token::Kind::end_block);
    return syntax::for_loop(std::move(parts));
  }

  syntax::Filters parse_filters() {
    syntax::Filters filters;
    do {
      std::string filter = name();
      filters.emplace_back(std::move(filter), token().is("(") ? arguments() : ArgumentList());
    } while (skip("|"));
    return filters;
  }

  StatementPtr parse_set() {
    Target to = target();
    if (skip("=")) {
      ExpressionPtr value = tuple();
      expect(Token::Kind::end_block);
      return syntax::assign(std::move(to), std::move(value));
    }
    syntax::Filters filters;
    if (skip("|")) filters = parse_filters();
    expect(Token::Kind::end_block);
    return syntax::capture(std::move(to), true, std::move(filters), outside_of_loops("endset"));
  }

  StatementPtr parse_filter() {
    syntax::Filters filters = parse_filters();
    expect(Token::Kind::end_block);
    return syntax::capture({}, false, std::move(filters), outside_of_loops("endfilter"));
  }

  // A loop around such a block cannot be left from within.
  Block outside_of_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block result = block_to(end);
    loops_ = loops;
    return result;
  }

  void parse_parameters(MacroBody& body) {
    expect("(");
    while (!token().is(")")) {
      body.parameters.push_back(name());
      if (skip("="))
        body.defaults.push_back(expression());
      else if (!body.defaults.empty())
        refuse("a default, as the parameter before has one");
      if (!token().is(")")) expect(",");
    }
    expect(")");
  }

  StatementPtr parse_macro() {
    MacroBody body;
    body.name = name();
    parse_parameters(body);
    expect(Token::Kind::end_block);
    body.block = outside_of_loops("endmacro");
    return syntax::macro(std::move(body));
  }

  StatementPtr parse_call() {
    MacroBody caller;
    caller.name = "caller";
    if (token().is("(")) parse_parameters(caller);
    ExpressionPtr callee = syntax::variable(name());
    while (skip(".")) callee = syntax::attribute(std::move(callee), name());
    ArgumentList given = arguments();
    expect(Token::Kind::end_block);
    caller.block = outside_of_loops("endcall");
    return syntax::call_block(std::move(caller), std::move(callee), std::move(given));
  }

  StatementPtr parse_with() {
    std::vector<std::pair<Target, ExpressionPtr>> variables;
    while (token().kind != Token::Kind::end_block) {
      Target variable;
      variable.name = name();
      expect("=");
      variables.emplace_back(std::move(variable), expression());
      if (!skip(",")) break;
    }
    expect(Token::Kind::end_block);
    return syntax::with(std::move(variables), block_to("endwith"));
  }

  int loops_ = 0;  // around the current place
};

}  // namespace

Block parse_template(std::string_view source) {
  if (source.size() > kMaxSource) fail("chat template: must have at most {} bytes (has {})", kMaxSource, source.size());
  if (const size_t bad = find_invalid_utf8(source); bad != std::string_view::npos)
    fail("chat template: byte {} is not valid UTF-8", bad + 1);
  return Parser(tokenize(source)).take_template();
}

}  // namespace qkv::jinja
