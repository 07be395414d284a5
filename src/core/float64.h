// QKV_FLOAT64(...) is its argument where layers and models are built for float64 as well as float32, which the tests of
// gradients need. It is empty where the CMake option QKV_FLOAT64 is off.
#pragma once

#ifdef QKV_FLOAT32_ONLY
#define QKV_FLOAT64(...)
#else
#define QKV_FLOAT64(...) __VA_ARGS__
#endif
