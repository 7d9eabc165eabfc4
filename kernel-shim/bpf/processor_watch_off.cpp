// In place of processor_watch.cpp where the build has no eBPF.
#include "processor_watch.h"

namespace lrpc::shim {

struct ProcessorWatch::Impl {};

namespace {
Error off() {
  return {Errc::not_supported, "eBPF: this build has none (LRPC_BPF; it needs clang, bpftool and libbpf)"};
}
}  // namespace

ProcessorWatch::ProcessorWatch(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
ProcessorWatch::~ProcessorWatch() = default;
Result<std::unique_ptr<ProcessorWatch>> ProcessorWatch::attach() { return off(); }
double ProcessorWatch::idle() { return 0; }
std::optional<ProcessorWatch::Cost> ProcessorWatch::cost() const { return std::nullopt; }
Result<UniqueFd> ProcessorWatch::count_cost() { return off(); }

}  // namespace lrpc::shim
