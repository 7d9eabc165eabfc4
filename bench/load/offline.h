// A processor that the whole machine does without for a while (/sys/devices/system/cpu/cpuN/online).
#pragma once

#include "core/child.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {

/// Takes one processor offline and brings it back. If the bench dies in between, a process that outlives it brings the
/// processor back. Move-only. Made in the bench's own process.
class OfflineProcessor {
 public:
  /// Takes nothing yet. Errors: not_permitted, not_supported: this user, or kernel, cannot, or others would lose
  /// something for good: a program that is bound to just this processor, or the cpuset (version 1) of this process.
  static Result<OfflineProcessor> prepare(int processor);
  OfflineProcessor(OfflineProcessor&& other) noexcept;
  OfflineProcessor& operator=(OfflineProcessor&&) = delete;
  ~OfflineProcessor();

  /// Blocks until the kernel has done so: some 10 ms.
  Status take();
  Status bring_back();

 private:
  OfflineProcessor(int processor, UniqueFd held, Child guardian) noexcept
      : processor_(processor), held_(std::move(held)), guardian_(std::move(guardian)) {}
  int processor_;
  bool taken_ = false;
  UniqueFd held_;  ///< The guardian reads its other end: the bench's death ends that.
  Child guardian_;
};

}  // namespace lrpc::bench
