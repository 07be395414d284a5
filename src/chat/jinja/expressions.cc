#include <algorithm>

#include "chat/jinja/print.h"
#include "chat/jinja/syntax.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

class Constant : public Expression {
 public:
  explicit Constant(Value value) : value_(std::move(value)) {}

 private:
  Value evaluate(Renderer&) const override { return value_; }
  const Value value_;
};

class Variable : public Expression {
 public:
  explicit Variable(std::string name) : name_(std::move(name)) {}

 private:
  Value evaluate(Renderer& r) const override { return r.find_variable(name_); }
  const std::string name_;
};

class SequenceLiteral : public Expression {
 public:
  SequenceLiteral(SequenceKind kind, std::vector<ExpressionPtr> items) : kind_(kind), items_(std::move(items)) {}

 private:
  Value evaluate(Renderer& r) const override {
    std::vector<Value> values;
    for (const ExpressionPtr& item : items_) values.push_back(item->value(r));
    return r.sequence(kind_, std::move(values));
  }
  const SequenceKind kind_;
  const std::vector<ExpressionPtr> items_;
};

class DictLiteral : public Expression {
 public:
  explicit DictLiteral(std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries) : entries_(std::move(entries)) {}

 private:
  Value evaluate(Renderer& r) const override {
    Dict::Entries entries;
    for (const auto& [key, value] : entries_) {
      const Value k = key->value(r);
      r.budget().work(entries.size() * sizeof(Value));
      set_entry(entries, k, value->value(r));
    }
    return r.dict(std::move(entries));
  }
  const std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries_;
};

class Binary : public Expression {
 public:
  Binary(syntax::Operator op, ExpressionPtr left, ExpressionPtr right)
      : op_(op), left_(std::move(left)), right_(std::move(right)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value a = left_->value(r), b = right_->value(r);
    switch (op_) {
      case syntax::Operator::add:
        return add(r, a, b);
      case syntax::Operator::subtract:
        return subtract(a, b);
      case syntax::Operator::multiply:
        return multiply(r, a, b);
      case syntax::Operator::divide:
        return divide(a, b);
      case syntax::Operator::floor_divide:
        return floor_divide(a, b);
      case syntax::Operator::modulo:
        return modulo(r, a, b);
      case syntax::Operator::power:
        break;
    }
    return power(a, b);
  }
  const syntax::Operator op_;
  const ExpressionPtr left_, right_;
};

enum class Sign { negative, positive, logical_not };

class Unary : public Expression {
 public:
  Unary(Sign sign, ExpressionPtr value) : sign_(sign), value_(std::move(value)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value value = value_->value(r);
    if (sign_ == Sign::logical_not) return !is_true(value);
    const Value negative = negate(value);
    return sign_ == Sign::negative ? negative : negate(negative);
  }
  const Sign sign_;
  const ExpressionPtr value_;
};

// Gives the value that decides, as Python does.
class Logical : public Expression {
 public:
  Logical(bool is_and, ExpressionPtr left, ExpressionPtr right)
      : is_and_(is_and), left_(std::move(left)), right_(std::move(right)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value left = left_->value(r);
    return is_true(left) == is_and_ ? right_->value(r) : left;
  }
  const bool is_and_;
  const ExpressionPtr left_, right_;
};

class Concatenation : public Expression {
 public:
  explicit Concatenation(std::vector<ExpressionPtr> parts) : parts_(std::move(parts)) {}

 private:
  Value evaluate(Renderer& r) const override {
    MarkedText text;
    for (const ExpressionPtr& part : parts_) {
      const Value value = part->value(r);
      r.budget().work(extent_of(value).bytes);
      append_str(text, value);
    }
    return r.text(std::move(text));
  }
  const std::vector<ExpressionPtr> parts_;
};

class Comparison : public Expression {
 public:
  Comparison(ExpressionPtr first, std::vector<std::pair<syntax::Relation, ExpressionPtr>> others)
      : first_(std::move(first)), others_(std::move(others)) {}

 private:
  Value evaluate(Renderer& r) const override {
    Value left = first_->value(r);
    for (const auto& [relation, expression] : others_) {
      Value right = expression->value(r);
      if (!holds(r, left, relation, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  static bool holds(Renderer& r, const Value& a, syntax::Relation relation, const Value& b) {
    using enum syntax::Relation;
    if (relation == in || relation == not_in) return contains(r, b, a) == (relation == in);
    r.budget().work(std::min(extent_of(a).bytes, extent_of(b).bytes));
    if (relation == syntax::Relation::equal || relation == unequal)
      return jinja::equal(a, b) == (relation == syntax::Relation::equal);
    const bool wants_less = relation == less || relation == less_equal;
    const bool or_equal = relation == less_equal || relation == greater_equal;
    const std::string_view symbol = wants_less ? (or_equal ? "<=" : "<") : (or_equal ? ">=" : ">");
    const auto order = compare(a, b, symbol);
    return order && (*order == 0 ? or_equal : (*order < 0) == wants_less);
  }

  const ExpressionPtr first_;
  const std::vector<std::pair<syntax::Relation, ExpressionPtr>> others_;
};

class Conditional : public Expression {
 public:
  Conditional(ExpressionPtr test, ExpressionPtr then, ExpressionPtr otherwise)
      : test_(std::move(test)), then_(std::move(then)), otherwise_(std::move(otherwise)) {}

 private:
  Value evaluate(Renderer& r) const override {
    if (is_true(test_->value(r))) return then_->value(r);
    return otherwise_ ? otherwise_->value(r) : Renderer::undefined("an inline if without else was false");
  }
  const ExpressionPtr test_, then_, otherwise_;
};

class Attribute : public Expression {
 public:
  Attribute(ExpressionPtr value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}

 private:
  Value evaluate(Renderer& r) const override { return get_attribute(r, value_->value(r), name_); }
  const ExpressionPtr value_;
  const std::string name_;
};

class Item : public Expression {
 public:
  Item(ExpressionPtr value, ExpressionPtr key) : value_(std::move(value)), key_(std::move(key)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value value = value_->value(r);
    return get_item(r, value, key_->value(r));
  }
  const ExpressionPtr value_, key_;
};

class Slice : public Expression {
 public:
  Slice(ExpressionPtr value, ExpressionPtr begin, ExpressionPtr end, ExpressionPtr step)
      : value_(std::move(value)), begin_(std::move(begin)), end_(std::move(end)), step_(std::move(step)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value value = value_->value(r);
    const auto part = [&](const ExpressionPtr& place) { return place ? place->value(r) : Value(None{}); };
    const Value begin = part(begin_), end = part(end_);
    return get_slice(r, value, begin, end, part(step_));
  }
  const ExpressionPtr value_, begin_, end_, step_;
};

class Call : public Expression {
 public:
  Call(ExpressionPtr callee, ArgumentList arguments) : callee_(std::move(callee)), arguments_(std::move(arguments)) {}

 private:
  Value evaluate(Renderer& r) const override {
    const Value callee = callee_->value(r);
    return r.call(callee, arguments_.evaluate(r));
  }
  const ExpressionPtr callee_;
  const ArgumentList arguments_;
};

class Applied : public Expression {
 public:
  Applied(const char* kind, const Function* function, ExpressionPtr value, std::string name, ArgumentList arguments)
      : kind_(kind),
        function_(function),
        value_(std::move(value)),
        name_(std::move(name)),
        arguments_(std::move(arguments)) {}

 private:
  Value evaluate(Renderer& r) const override {
    if (!function_) fail("chat template: No {} named '{}'.", kind_, name_);
    const Value value = value_->value(r);
    return function_->call(r, value, arguments_.evaluate(r));
  }
  const char* kind_;
  const Function* function_;  // null for an unknown name
  const ExpressionPtr value_;
  const std::string name_;
  const ArgumentList arguments_;
};

}  // namespace

Arguments ArgumentList::evaluate(Renderer& r) const {
  Arguments arguments;
  for (const ExpressionPtr& expression : positional) arguments.positional.push_back(expression->value(r));
  for (const auto& [name, expression] : named) arguments.named.emplace_back(name, expression->value(r));
  if (list) {
    const SequencePtr items = r.iterate(list->value(r));
    arguments.positional.insert(arguments.positional.end(), items->items.begin(), items->items.end());
  }
  if (dict) {
    const Value value = dict->value(r);
    if (!dict_of(value)) fail("chat template: the argument after ** must be a mapping, not {}", type_name(value));
    for (const auto& [key, entry] : dict_of(value)->entries) arguments.named.emplace_back(str_of(key).bytes, entry);
  }
  r.budget().work(sizeof(Value) * (arguments.positional.size() + arguments.named.size()));
  return arguments;
}

namespace syntax {

ExpressionPtr constant(Value value) { return std::make_unique<Constant>(std::move(value)); }
ExpressionPtr variable(std::string name) { return std::make_unique<Variable>(std::move(name)); }
ExpressionPtr sequence(SequenceKind kind, std::vector<ExpressionPtr> items) {
  return std::make_unique<SequenceLiteral>(kind, std::move(items));
}
ExpressionPtr dict(std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries) {
  return std::make_unique<DictLiteral>(std::move(entries));
}
ExpressionPtr binary(Operator op, ExpressionPtr left, ExpressionPtr right) {
  return std::make_unique<Binary>(op, std::move(left), std::move(right));
}
ExpressionPtr negative(ExpressionPtr value) { return std::make_unique<Unary>(Sign::negative, std::move(value)); }
ExpressionPtr positive(ExpressionPtr value) { return std::make_unique<Unary>(Sign::positive, std::move(value)); }
ExpressionPtr logical_not(ExpressionPtr value) { return std::make_unique<Unary>(Sign::logical_not, std::move(value)); }
ExpressionPtr logical(bool is_and, ExpressionPtr left, ExpressionPtr right) {
  return std::make_unique<Logical>(is_and, std::move(left), std::move(right));
}
ExpressionPtr concatenation(std::vector<ExpressionPtr> parts) {
  return std::make_unique<Concatenation>(std::move(parts));
}
ExpressionPtr comparison(ExpressionPtr first, std::vector<std::pair<Relation, ExpressionPtr>> others) {
  return std::make_unique<Comparison>(std::move(first), std::move(others));
}
ExpressionPtr conditional(ExpressionPtr test, ExpressionPtr then, ExpressionPtr otherwise) {
  return std::make_unique<Conditional>(std::move(test), std::move(then), std::move(otherwise));
}
ExpressionPtr attribute(ExpressionPtr value, std::string name) {
  return std::make_unique<Attribute>(std::move(value), std::move(name));
}
ExpressionPtr item(ExpressionPtr value, ExpressionPtr key) {
  return std::make_unique<Item>(std::move(value), std::move(key));
}
ExpressionPtr slice(ExpressionPtr value, ExpressionPtr begin, ExpressionPtr end, ExpressionPtr step) {
  return std::make_unique<Slice>(std::move(value), std::move(begin), std::move(end), std::move(step));
}
ExpressionPtr call(ExpressionPtr callee, ArgumentList arguments) {
  return std::make_unique<Call>(std::move(callee), std::move(arguments));
}
ExpressionPtr filter(ExpressionPtr value, std::string name, ArgumentList arguments) {
  const Function* function = find_filter(name);
  return std::make_unique<Applied>("filter", function, std::move(value), std::move(name), std::move(arguments));
}
ExpressionPtr test(ExpressionPtr value, std::string name, ArgumentList arguments) {
  const Function* function = find_test(name);
  return std::make_unique<Applied>("test", function, std::move(value), std::move(name), std::move(arguments));
}

}  // namespace syntax
}  // namespace qkv::jinja
