// The syntax tree of a template: expressions, which have values, and statements, which write text.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/renderer.h"
#include "chat/jinja/value.h"

namespace qkv::jinja {

class Expression {
 public:
  virtual ~Expression() = default;
  Value value(Renderer& r) const {
    r.budget().step();
    r.budget().enter();
    Value result = evaluate(r);
    r.budget().leave();
    return result;
  }

 private:
  virtual Value evaluate(Renderer& r) const = 0;
};
using ExpressionPtr = std::unique_ptr<const Expression>;

// How a loop continues: with the next statement, with the next item, or not at all.
enum class Flow { next, skip, end };

class Statement {
 public:
  virtual ~Statement() = default;
  virtual Flow execute(Renderer& r) const = 0;
};
using StatementPtr = std::unique_ptr<const Statement>;

// Statements one after the other, up to break or continue.
struct Block {
  std::vector<StatementPtr> statements = {};

  Flow execute(Renderer& r) const;
};

struct ArgumentList {
  std::vector<ExpressionPtr> positional = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  ExpressionPtr list = {}, dict = {};  // *list and **dict; null if there is none

  Arguments evaluate(Renderer& r) const;
};

// The target of an assignment: a variable, an attribute of a namespace, or several targets.
struct Target {
  std::string name = {}, attribute = {};
  std::vector<Target> parts = {};

  void assign(Renderer& r, const Value& value) const;
};

// name(parameter, parameter=default)
struct MacroBody {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Block block;
};

// Make expressions.
namespace syntax {

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Relation { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };

ExpressionPtr constant(Value value);
ExpressionPtr variable(std::string name);
ExpressionPtr sequence(SequenceKind kind, std::vector<ExpressionPtr> items);
ExpressionPtr dict(std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries);
ExpressionPtr binary(Operator op, ExpressionPtr left, ExpressionPtr right);
ExpressionPtr negative(ExpressionPtr value);
ExpressionPtr positive(ExpressionPtr value);
ExpressionPtr logical_not(ExpressionPtr value);
ExpressionPtr logical(bool is_and, ExpressionPtr left, ExpressionPtr right);
ExpressionPtr concatenation(std::vector<ExpressionPtr> parts);
ExpressionPtr comparison(ExpressionPtr first, std::vector<std::pair<Relation, ExpressionPtr>> others);
ExpressionPtr conditional(ExpressionPtr test, ExpressionPtr then, ExpressionPtr otherwise);  // otherwise may be null
ExpressionPtr attribute(ExpressionPtr value, std::string name);
ExpressionPtr item(ExpressionPtr value, ExpressionPtr key);
ExpressionPtr slice(ExpressionPtr value, ExpressionPtr begin, ExpressionPtr end, ExpressionPtr step);  // may be null
ExpressionPtr call(ExpressionPtr callee, ArgumentList arguments);
ExpressionPtr filter(ExpressionPtr value, std::string name, ArgumentList arguments);
ExpressionPtr test(ExpressionPtr value, std::string name, ArgumentList arguments);

// Make statements.
StatementPtr text(std::string text);
StatementPtr print(ExpressionPtr value);
StatementPtr assign(Target target, ExpressionPtr value);
// The text of the block, changed by filters (name and arguments), becomes the variable, or is written without a target.
using Filters = std::vector<std::pair<std::string, ArgumentList>>;
StatementPtr capture(Target target, bool has_target, Filters filters, Block block);
StatementPtr choice(std::vector<std::pair<ExpressionPtr, Block>> branches, Block otherwise);
struct ForParts {
  Target target;
  ExpressionPtr items, condition;  // the condition may be null
  Block block, otherwise;
};
StatementPtr for_loop(ForParts parts);
StatementPtr leave_loop(Flow flow);
StatementPtr macro(MacroBody body);
StatementPtr call_block(MacroBody caller, ExpressionPtr callee, ArgumentList arguments);
StatementPtr with(std::vector<std::pair<Target, ExpressionPtr>> variables, Block block);

}  // namespace syntax
}  // namespace qkv::jinja
