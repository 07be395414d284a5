#include <algorithm>

#include "chat/jinja/print.h"
#include "chat/jinja/syntax.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

class TextStatement : public Statement {
 public:
  explicit TextStatement(std::string text) : text_(MarkedText::of_template(std::move(text))) {}
  Flow execute(Renderer& r) const override {
    r.write(text_);
    return Flow::next;
  }

 private:
  const MarkedText text_;
};

class Print : public Statement {
 public:
  explicit Print(ExpressionPtr value) : value_(std::move(value)) {}
  Flow execute(Renderer& r) const override {
    r.write(value_->value(r));
    return Flow::next;
  }

 private:
  const ExpressionPtr value_;
};

class Assign : public Statement {
 public:
  Assign(Target target, ExpressionPtr value) : target_(std::move(target)), value_(std::move(value)) {}
  Flow execute(Renderer& r) const override {
    target_.assign(r, value_->value(r));
    return Flow::next;
  }

 private:
  const Target target_;
  const ExpressionPtr value_;
};

class CaptureBlock : public Statement {
 public:
  CaptureBlock(Target target, bool has_target, syntax::Filters filters, Block block)
      : target_(std::move(target)), has_target_(has_target), filters_(std::move(filters)), block_(std::move(block)) {}
  Flow execute(Renderer& r) const override {
    Value text = written(r);
    for (const auto& [name, arguments] : filters_) {
      const Function* filter = find_filter(name);
      if (!filter) fail("chat template: No filter named '{}'.", name);
      text = filter->call(r, text, arguments.evaluate(r));
    }
    has_target_ ? target_.assign(r, text) : r.write(text);
    return Flow::next;
  }

 private:
  Value written(Renderer& r) const {
    const Renderer::InScope scope(r);
    Renderer::Capture capture(r);
    block_.execute(r);
    return capture.take();
  }

  const Target target_;
  const bool has_target_;
  const syntax::Filters filters_;
  const Block block_;
};

class Choice : public Statement {
 public:
  Choice(std::vector<std::pair<ExpressionPtr, Block>> branches, Block otherwise)
      : branches_(std::move(branches)), otherwise_(std::move(otherwise)) {}
  Flow execute(Renderer& r) const override {
    for (const auto& [test, block] : branches_)
      if (is_true(test->value(r))) return block.execute(r);
    return otherwise_.execute(r);
  }

 private:
  const std::vector<std::pair<ExpressionPtr, Block>> branches_;
  const Block otherwise_;
};

class For : public Statement {
 public:
  explicit For(syntax::ForParts parts) : p_(std::move(parts)) {}
  Flow execute(Renderer& r) const override {
    Loop* loop = r.new_loop(chosen(r));
    if (loop->items->items.empty()) {
      const Renderer::InScope scope(r);
      return p_.otherwise.execute(r);
    }
    for (; loop->index < loop->items->items.size(); loop->index++) {
      r.budget().step();
      const Renderer::InScope scope(r);
      r.set_variable("loop", loop);
      p_.target.assign(r, loop->items->items[loop->index]);
      if (p_.block.execute(r) == Flow::end) break;
    }
    return Flow::next;
  }

 private:
  // The items for which the condition holds.
  SequencePtr chosen(Renderer& r) const {
    SequencePtr items = r.iterate(p_.items->value(r));
    if (!p_.condition) return items;
    std::vector<Value> kept;
    for (const Value& item : items->items) {
      const Renderer::InScope scope(r);
      p_.target.assign(r, item);
      if (is_true(p_.condition->value(r))) kept.push_back(item);
    }
    return std::get<SequencePtr>(r.list(std::move(kept)));
  }

  const syntax::ForParts p_;
};

class LeaveLoop : public Statement {
 public:
  explicit LeaveLoop(Flow flow) : flow_(flow) {}
  Flow execute(Renderer&) const override { return flow_; }

 private:
  const Flow flow_;
};

class DefineMacro : public Statement {
 public:
  explicit DefineMacro(MacroBody body) : body_(std::move(body)) {}
  Flow execute(Renderer& r) const override {
    r.set_variable(body_.name, r.new_macro(&body_));
    return Flow::next;
  }

 private:
  const MacroBody body_;
};

// The block of {% call %} is the macro `caller` of the macro that is called.
class CallBlock : public Statement {
 public:
  CallBlock(MacroBody caller, ExpressionPtr callee, ArgumentList arguments)
      : caller_(std::move(caller)), callee_(std::move(callee)), arguments_(std::move(arguments)) {}
  Flow execute(Renderer& r) const override {
    Arguments arguments = arguments_.evaluate(r);
    arguments.named.emplace_back("caller", r.new_macro(&caller_));
    r.write(r.call(callee_->value(r), arguments));
    return Flow::next;
  }

 private:
  const MacroBody caller_;
  const ExpressionPtr callee_;
  const ArgumentList arguments_;
};

class With : public Statement {
 public:
  With(std::vector<std::pair<Target, ExpressionPtr>> variables, Block block)
      : variables_(std::move(variables)), block_(std::move(block)) {}
  Flow execute(Renderer& r) const override {
    std::vector<Value> values;
    for (const auto& [target, expression] : variables_) values.push_back(expression->value(r));
    const Renderer::InScope scope(r);
    for (size_t i = 0; i < values.size(); i++) variables_[i].first.assign(r, values[i]);
    return block_.execute(r);
  }

 private:
  const std::vector<std::pair<Target, ExpressionPtr>> variables_;
  const Block block_;
};

}  // namespace

Flow Block::execute(Renderer& r) const {
  r.budget().enter();
  Flow flow = Flow::next;
  for (const StatementPtr& statement : statements) {
    r.budget().step();
    flow = statement->execute(r);
    if (flow != Flow::next) break;
  }
  r.budget().leave();
  return flow;
}

void Target::assign(Renderer& r, const Value& value) const {
  if (!parts.empty()) {
    const SequencePtr values = r.iterate(value);
    if (values->items.size() != parts.size())
      fail("chat template: {} values cannot be unpacked to {}", values->items.size(), parts.size());
    for (size_t i = 0; i < parts.size(); i++) parts[i].assign(r, values->items[i]);
    return;
  }
  if (attribute.empty()) return r.set_variable(name, value);
  const Value object = r.find_variable(name);
  const auto* space = std::get_if<Namespace*>(&object);
  if (!space) fail("chat template: cannot assign attribute on non-namespace object");
  r.set_attribute(**space, attribute, value);
}

namespace syntax {

StatementPtr text(std::string text) { return std::make_unique<TextStatement>(std::move(text)); }
StatementPtr print(ExpressionPtr value) { return std::make_unique<Print>(std::move(value)); }
StatementPtr assign(Target target, ExpressionPtr value) {
  return std::make_unique<Assign>(std::move(target), std::move(value));
}
StatementPtr capture(Target target, bool has_target, Filters filters, Block block) {
  return std::make_unique<CaptureBlock>(std::move(target), has_target, std::move(filters), std::move(block));
}
StatementPtr choice(std::vector<std::pair<ExpressionPtr, Block>> branches, Block otherwise) {
  return std::make_unique<Choice>(std::move(branches), std::move(otherwise));
}
StatementPtr for_loop(ForParts parts) { return std::make_unique<For>(std::move(parts)); }
StatementPtr leave_loop(Flow flow) { return std::make_unique<LeaveLoop>(flow); }
StatementPtr macro(MacroBody body) { return std::make_unique<DefineMacro>(std::move(body)); }
StatementPtr call_block(MacroBody caller, ExpressionPtr callee, ArgumentList arguments) {
  return std::make_unique<CallBlock>(std::move(caller), std::move(callee), std::move(arguments));
}
StatementPtr with(std::vector<std::pair<Target, ExpressionPtr>> variables, Block block) {
  return std::make_unique<With>(std::move(variables), std::move(block));
}

}  // namespace syntax
}  // namespace qkv::jinja
