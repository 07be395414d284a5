// Whether the tests are built with AddressSanitizer, which makes them up to thirty times slower.
#pragma once

namespace qkv::testing {

#ifdef __has_feature
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace qkv::testing
