#include "model/layers/probe.h"

namespace qkv {

Probe::Part::Part(Probe* probe, const char* name, int64_t number) : probe_(probe) {
  if (probe_) probe_->parts_.push_back({name, number, probe_->side()});
}

Probe::Part::Part(Probe* probe, const char* name, TokenSide side) : probe_(probe) {
  if (probe_) probe_->parts_.push_back({name, -1, side});
}

Probe::Part::~Part() {
  if (probe_) probe_->parts_.pop_back();
}

void Probe::Part::rename(const char* name) {
  if (probe_) probe_->parts_.back().name = name;
}

#define QKV_DEFINE(T)                                               \
  void Probe::output(std::string_view, Pass, Matrix<T>, int64_t) {} \
  void Probe::gradient(std::string_view, Matrix<const T>) {}
QKV_FOR_EACH_ELEMENT(QKV_DEFINE)
#undef QKV_DEFINE

void Probe::take(const Probe&, int64_t, int64_t) {}

}  // namespace qkv
