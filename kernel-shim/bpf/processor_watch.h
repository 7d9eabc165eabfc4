// The optional eBPF program: how idle the processors are, by the scheduler's own word instead of samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// An attached program, detached and gone with this object. Owned by one thread at a time. For lrpcd and the bench: it
/// costs every context switch of the machine some nanoseconds (`lrpc-bench bpf` says how many).
class ProcessorWatch {
 public:
  /// Needs CAP_BPF and CAP_PERFMON (or root), a kernel with BTF, and a build with LRPC_BPF. not_supported, and why,
  /// without.
  static Result<std::unique_ptr<ProcessorWatch>> attach();

  ProcessorWatch(const ProcessorWatch&) = delete;
  ProcessorWatch& operator=(const ProcessorWatch&) = delete;
  ~ProcessorWatch();

  /// Processors that were idle since the look before, on average; the first counts from attach(). Those that were
  /// offline at a look do not count. No system call but the clock's and a read of the list of processors online.
  [[nodiscard]] double idle();

  /// What the kernel counted of the program's own cost, while somebody had that counting switched on
  /// (BPF_ENABLE_STATS).
  struct Cost {
    std::uint64_t runs = 0;
    std::uint64_t nanoseconds = 0;
  };
  [[nodiscard]] std::optional<Cost> cost() const;
  /// Switches that counting on, for the whole machine, until the result is closed.
  static Result<UniqueFd> count_cost();

 private:
  struct Impl;
  explicit ProcessorWatch(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrpc::shim
