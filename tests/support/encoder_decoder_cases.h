// The models of tests/golden/encoder_decoders.
#pragma once

namespace qkv::testing {

inline constexpr const char* kEncoderDecoderCases[] = {"bart", "flan_t5", "m2m_100", "madlad",  "mbart", "mbart50",
                                                       "mt5",  "nllb",    "opus",    "pegasus", "t5"};

}  // namespace qkv::testing
