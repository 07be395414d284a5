// Tests: value is NAME.
#include <algorithm>

#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "chat/jinja/text_parts.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

bool is_integer_value(const Value& value) { return std::holds_alternative<int64_t>(value); }
bool is_real(const Value& value) { return std::holds_alternative<double>(value); }
bool is_text(const Value& value) { return text_of(value) != nullptr; }
bool is_mapping(const Value& value) { return dict_of(value) != nullptr; }
bool is_defined(const Value& value) { return !is_undefined(value); }
bool is_boolean(const Value& value) { return std::holds_alternative<bool>(value); }
bool is_exactly_true(const Value& value) { return is_boolean(value) && std::get<bool>(value); }
bool is_exactly_false(const Value& value) { return is_boolean(value) && !std::get<bool>(value); }
bool is_number(const Value& value) { return number_of(value).has_value(); }
bool is_iterable(const Value& value) {
  return is_undefined(value) || is_text(value) || is_mapping(value) || sequence_of(value) ||
         std::holds_alternative<Loop*>(value);
}
bool is_sequence(const Value& value) {
  const Sequence* sequence = sequence_of(value);
  if (sequence) return sequence->kind != SequenceKind::iterator && sequence->kind != SequenceKind::view;
  return is_text(value) || is_mapping(value) || is_undefined(value);
}
bool is_callable(const Value& value) {
  return std::holds_alternative<const Macro*>(value) || std::holds_alternative<const Function*>(value) ||
         std::holds_alternative<std::shared_ptr<const Method>>(value) || is_undefined(value);
}

template <bool (*kTest)(const Value&)>
Value test_type(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {});
  return kTest(self);
}

template <bool kUpper>
Value test_case(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {});
  r.budget().work(extent_of(self).bytes);
  return has_case(str_of(self).bytes, kUpper);
}

Value remainder(Renderer& r, const Value& value, const Value& divisor) {
  check_defined(value);
  if (!number_of(value)) fail("chat template: the remainder of {} is not defined", type_name(value));
  return modulo(r, value, divisor);
}

template <int64_t kRest>
Value test_parity(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {});
  return equal(remainder(r, self, int64_t{2}), kRest);
}

Value test_divisible(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "divisibleby", {"num"});
  return equal(remainder(r, self, p.get(0)), int64_t{0});
}

template <bool kEqual>
Value test_equal(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {"other"});
  if (!p.find(0)) p.get(0);
  r.budget().work(std::min(extent_of(self).bytes, extent_of(*p.find(0)).bytes));
  return equal(self, *p.find(0)) == kEqual;
}

template <char kSign, bool kOrEqual>
Value test_order(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {"other"});
  r.budget().work(std::min(extent_of(self).bytes, extent_of(p.get(0)).bytes));
  const auto order = compare(self, p.get(0), std::string_view(kSign == '<' ? "<" : ">"));
  if (!order) return false;
  return *order == 0 ? kOrEqual : (*order < 0) == (kSign == '<');
}

Value test_in(Renderer& r, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "in", {"seq"});
  return contains(r, p.get(0), self);
}

Value test_same(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "sameas", {"other"});
  const Value& other = p.get(0);
  if (self.index() != other.index()) return false;
  if (const auto* list = std::get_if<SequencePtr>(&self)) return *list == std::get<SequencePtr>(other);
  if (const auto* dict = std::get_if<DictPtr>(&self)) return *dict == std::get<DictPtr>(other);
  return equal(self, other);
}

template <const Function* (*kFind)(std::string_view)>
Value test_known(Renderer&, const Value& self, const Arguments& arguments) {
  const Parameters p(arguments, "test", {});
  return is_text(self) && kFind(text_of(self)->bytes) != nullptr;
}

constexpr Function kTests[] = {{"!=", test_equal<false>},
                               {"<", test_order<'<', false>},
                               {"<=", test_order<'<', true>},
                               {"==", test_equal<true>},
                               {">", test_order<'>', false>},
                               {">=", test_order<'>', true>},
                               {"boolean", test_type<is_boolean>},
                               {"callable", test_type<is_callable>},
                               {"defined", test_type<is_defined>},
                               {"divisibleby", test_divisible},
                               {"eq", test_equal<true>},
                               {"equalto", test_equal<true>},
                               {"even", test_parity<0>},
                               {"false", test_type<is_exactly_false>},
                               {"filter", test_known<find_filter>},
                               {"float", test_type<is_real>},
                               {"ge", test_order<'>', true>},
                               {"greaterthan", test_order<'>', false>},
                               {"gt", test_order<'>', false>},
                               {"in", test_in},
                               {"integer", test_type<is_integer_value>},
                               {"iterable", test_type<is_iterable>},
                               {"le", test_order<'<', true>},
                               {"lessthan", test_order<'<', false>},
                               {"lower", test_case<false>},
                               {"lt", test_order<'<', false>},
                               {"mapping", test_type<is_mapping>},
                               {"ne", test_equal<false>},
                               {"none", test_type<is_none>},
                               {"number", test_type<is_number>},
                               {"odd", test_parity<1>},
                               {"sameas", test_same},
                               {"sequence", test_type<is_sequence>},
                               {"string", test_type<is_text>},
                               {"test", test_known<find_test>},
                               {"true", test_type<is_exactly_true>},
                               {"undefined", test_type<is_undefined>},
                               {"upper", test_case<true>}};

}  // namespace

const Function* find_test(std::string_view name) { return find_in(kTests, name); }

}  // namespace qkv::jinja
