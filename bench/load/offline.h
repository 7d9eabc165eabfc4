// Takes a processor away from the whole machine for a while (/sys/devices/system/cpu/cpuN/online).
#pragma once

#include "core/child.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Takes one processor offline and brings it back. If the bench dies in between, a guardian process that outlives it
/// brings the processor back. Move-only. Constructed in the bench's own process.
class OfflineProcessor {
 public:
  /// Takes nothing offline yet. Errors: not_permitted, not_supported: this user or kernel cannot do it, or others would
  /// lose the processor for good: a program bound to it alone, or this process's cpuset (version 1).
  static Result<OfflineProcessor> prepare(int processor);
  OfflineProcessor(OfflineProcessor&& other) noexcept;
  OfflineProcessor& operator=(OfflineProcessor&&) = delete;
  ~OfflineProcessor();

  /// Takes the processor offline. Blocks until the kernel has done so: some 10 ms.
  Status take();
  Status bring_back();

 private:
  OfflineProcessor(int processor, UniqueFd held, Child guardian) noexcept
      : processor_(processor), held_(std::move(held)), guardian_(std::move(guardian)) {}
  int processor_;
  bool taken_ = false;
  UniqueFd held_;  ///< The guardian reads the other end of this pipe, and sees its end when the bench dies.
  Child guardian_;
};

}  // namespace lrpc::bench
