// The models of tests/golden/encoder_decoders.
#pragma once

namespace qkv::testing {

inline constexpr const char* kEncoderDecoderCases[] = {"bart", "m2m_100", "mbart",  "mbart50",
                                                       "nllb", "opus",    "pegasus"};

}  // namespace qkv::testing
