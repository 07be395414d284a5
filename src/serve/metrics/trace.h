// Trace context of the W3C (https://www.w3.org/TR/trace-context/): which request of another program led to this one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qkv {

struct TraceContext {
  std::string trace;   // 32 hexadecimal digits in lower case, not all zeros
  std::string parent;  // 16 of them: the span of the caller
  bool sampled = false;
};

// Parses the header traceparent, of version 00. Returns nothing for any other text.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// Returns a new span: 16 random hexadecimal digits, not all zeros. Any thread.
std::string new_span();

}  // namespace qkv
