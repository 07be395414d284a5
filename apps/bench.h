// Functions that the benchmarks share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "program/bench/benchmark.h"

// Prints the time of each op and its speed relative to its limit: the peak rate of multiply-adds or the memory
// bandwidth. `ms` is the total time, of which the times of the ops are parts.
void print_profile(const std::vector<qkv::OpTime>& ops, double ms);

// Prints the figures and the ops, if there are any, as one line of JSON.
void print_json(nlohmann::ordered_json figures, const std::vector<qkv::OpTime>& ops);

// Returns the peak resident memory of this process in bytes.
int64_t peak_memory();

void add_bench_cluster_command(CLI::App& bench);
void add_bench_decode_command(CLI::App& bench);
void add_bench_generate_command(CLI::App& bench);
void add_bench_recommend_command(CLI::App& bench);
