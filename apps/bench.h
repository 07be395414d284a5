// What the benchmarks share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "qkv/benchmark.h"

// By op, with the share of what limits it: the peak of multiply-adds, or the bandwidth of memory. `ms` is the whole, of
// which the ops' ms are parts.
void print_profile(const std::vector<qkv::OpTime>& ops, double ms);

// One line: the figures, and "ops" if there are any.
void print_json(nlohmann::ordered_json figures, const std::vector<qkv::OpTime>& ops);

// The most memory that this process has held at one time, in bytes.
int64_t peak_memory();

void add_bench_decode_command(CLI::App& bench);
void add_bench_generate_command(CLI::App& bench);
void add_bench_recommend_command(CLI::App& bench);
