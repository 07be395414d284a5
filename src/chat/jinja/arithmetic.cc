// Operators of values, with the meaning that they have in Python.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/jinja/print.h"
#include "chat/jinja/renderer.h"
#include "core/fail.h"

namespace qkv::jinja {
namespace {

constexpr int64_t kMaxRepeats = 1 << 24;

[[noreturn]] void refuse(std::string_view symbol, const Value& a, const Value& b) {
  check_defined(a);
  check_defined(b);
  fail("chat template: unsupported operand type(s) for {}: '{}' and '{}'", symbol, type_name(a), type_name(b));
}

[[noreturn]] void fail_overflow() { fail("chat template: an integer is beyond 64 bits"); }

// Applies an operation to two integers or two floats. of_integers returns whether the result overflows.
template <class Integers, class Floats>
Value arithmetic(std::string_view symbol, const Value& a, const Value& b, Integers&& of_integers, Floats&& of_floats) {
  const auto i = integer_of(a), j = integer_of(b);
  if (i && j) {
    int64_t result = 0;
    if (of_integers(*i, *j, &result)) fail_overflow();
    return result;
  }
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) refuse(symbol, a, b);
  return of_floats(*x, *y);
}

void check_divisor(const Value& b) {
  if (const auto y = number_of(b); y && *y == 0) fail("chat template: division by zero");
}

double floor_modulo(double x, double y) {
  const double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

Value repeat(Renderer& r, const Value& value, int64_t count) {
  count = std::clamp<int64_t>(count, 0, kMaxRepeats);
  if (const MarkedText* text = text_of(value)) {
    const Charge room(&r.budget(), (text->size() + text->data.size() * sizeof(ByteRange)) * static_cast<size_t>(count));
    MarkedText result;
    for (int64_t i = 0; i < count && !text->bytes.empty(); i++) result.append(*text);
    return r.text(std::move(result));
  }
  const Sequence* sequence = sequence_of(value);
  const Charge room(&r.budget(), sequence->items.size() * sizeof(Value) * static_cast<size_t>(count));
  std::vector<Value> items;
  for (int64_t i = 0; i < count && !sequence->items.empty(); i++)
    items.insert(items.end(), sequence->items.begin(), sequence->items.end());
  return r.sequence(sequence->kind, std::move(items));
}

bool is_list(const Value& value) {
  const Sequence* sequence = sequence_of(value);
  return sequence && (sequence->kind == SequenceKind::list || sequence->kind == SequenceKind::tuple);
}

}  // namespace

Value add(Renderer& r, const Value& a, const Value& b) {
  const MarkedText *s = text_of(a), *t = text_of(b);
  if (s && t) {
    MarkedText both = *s;
    both.append(*t);
    return r.text(std::move(both));
  }
  if (s || t) {
    check_defined(a);
    check_defined(b);
    if (s) fail("chat template: can only concatenate str (not \"{}\") to str", type_name(b));
  }
  if (is_list(a) && is_list(b) && sequence_of(a)->kind == sequence_of(b)->kind) {
    std::vector<Value> items = sequence_of(a)->items;
    items.insert(items.end(), sequence_of(b)->items.begin(), sequence_of(b)->items.end());
    return r.sequence(sequence_of(a)->kind, std::move(items));
  }
  return arithmetic(
      "+", a, b, [](int64_t i, int64_t j, int64_t* k) { return __builtin_add_overflow(i, j, k); },
      [](double x, double y) { return x + y; });
}

Value subtract(const Value& a, const Value& b) {
  return arithmetic(
      "-", a, b, [](int64_t i, int64_t j, int64_t* k) { return __builtin_sub_overflow(i, j, k); },
      [](double x, double y) { return x - y; });
}

Value multiply(Renderer& r, const Value& a, const Value& b) {
  if (const auto count = integer_of(b); count && (text_of(a) || is_list(a))) return repeat(r, a, *count);
  if (const auto count = integer_of(a); count && (text_of(b) || is_list(b))) return repeat(r, b, *count);
  return arithmetic(
      "*", a, b, [](int64_t i, int64_t j, int64_t* k) { return __builtin_mul_overflow(i, j, k); },
      [](double x, double y) { return x * y; });
}

Value divide(const Value& a, const Value& b) {
  const auto x = number_of(a), y = number_of(b);
  if (!x || !y) refuse("/", a, b);
  check_divisor(b);
  return *x / *y;
}

Value floor_divide(const Value& a, const Value& b) {
  check_divisor(b);
  return arithmetic(
      "//", a, b,
      [](int64_t i, int64_t j, int64_t* k) {
        if (i == INT64_MIN && j == -1) return true;
        *k = i / j - (i % j != 0 && (i < 0) != (j < 0) ? 1 : 0);
        return false;
      },
      [](double x, double y) { return std::floor((x - floor_modulo(x, y)) / y + 0.5); });
}

Value modulo(Renderer& r, const Value& a, const Value& b) {
  if (const MarkedText* format = text_of(a)) {
    const Sequence* values = sequence_of(b);
    const bool is_tuple = values && values->kind == SequenceKind::tuple;
    return format_text(r, *format, is_tuple ? values->items : std::vector<Value>{b});
  }
  check_divisor(b);
  return arithmetic(
      "%", a, b,
      [](int64_t i, int64_t j, int64_t* k) {
        *k = j == -1 ? 0 : i % j;
        if (*k != 0 && (*k < 0) != (j < 0)) *k += j;
        return false;
      },
      floor_modulo);
}

Value power(const Value& a, const Value& b) {
  const auto i = integer_of(a), j = integer_of(b);
  if (!i || !j || *j < 0) {
    const auto x = number_of(a), y = number_of(b);
    if (!x || !y) refuse("**", a, b);
    if (*x == 0 && *y < 0) fail("chat template: zero cannot be raised to a negative power");
    return std::pow(*x, *y);
  }
  int64_t result = 1, base = *i;
  for (int64_t left = *j; left > 0; left >>= 1) {
    if ((left & 1) && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    if (left > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

Value negate(const Value& a) {
  check_defined(a);
  if (const auto i = integer_of(a)) return subtract(int64_t{0}, *i);
  if (const auto x = number_of(a)) return -*x;
  fail("chat template: bad operand type for unary -: '{}'", type_name(a));
}

bool contains(Renderer& r, const Value& list, const Value& item) {
  if (const MarkedText* text = text_of(list)) {
    check_defined(item);
    const MarkedText* part = text_of(item);
    if (!part) fail("chat template: 'in <string>' requires string as left operand, not {}", type_name(item));
    r.budget().work(text->size());
    return text->bytes.find(part->bytes) != std::string::npos;
  }
  r.budget().work(extent_of(list).bytes);
  if (const Dict* dict = dict_of(list)) return dict->find(item) != nullptr;
  const SequencePtr items = r.iterate(list);
  return std::ranges::any_of(items->items, [&](const Value& other) { return equal(other, item); });
}

Value format_text(Renderer& r, const MarkedText& format, const std::vector<Value>& values) {
  MarkedText result;
  size_t used = 0;
  const std::string& bytes = format.bytes;
  for (size_t place = 0; place < bytes.size();) {
    const size_t percent = std::min(bytes.find('%', place), bytes.size());
    result.append(format, place, percent);
    if (percent == bytes.size()) break;
    size_t end = percent + 1;
    int precision = -1;
    if (end + 1 < bytes.size() && bytes[end] == '.' && bytes[end + 1] >= '0' && bytes[end + 1] <= '9') {
      precision = bytes[end + 1] - '0';
      end += 2;
    }
    const char kind = end < bytes.size() ? bytes[end] : '\0';
    place = end + 1;
    if (kind == '%' && precision < 0) {
      result.append("%", false);
      continue;
    }
    if (used == values.size()) fail("chat template: not enough arguments for format string");
    const Value& value = values[used++];
    r.budget().work(extent_of(value).bytes);
    const auto x = number_of(value);
    if (kind == 's' && precision < 0) {
      append_str(result, value);
    } else if (kind == 'r' && precision < 0) {
      append_repr(result, value);
    } else if ((kind == 'd' || kind == 'i') && precision < 0 && x && std::abs(*x) < 0x1p63) {
      result.append(std::to_string(integer_of(value).value_or(static_cast<int64_t>(*x))), false);
    } else if (kind == 'f' && x) {
      result.append(fmt::format("{:.{}f}", *x, precision < 0 ? 6 : precision), false);
    } else {
      fail("chat template: the format character '{}' is not supported for {}", kind, type_name(value));
    }
  }
  if (used < values.size() && !(values.size() == 1 && dict_of(values.front())))
    fail("chat template: not all arguments converted during string formatting");
  return r.text(std::move(result));
}

}  // namespace qkv::jinja
