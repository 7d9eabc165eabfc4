// Control groups for processor time, version 1 or 2, for hogs and callers that are to get unequal shares.
#pragma once

#include <sys/types.h>

#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// One group under the root of the hierarchy. The destructor removes it; its processes must have ended and been reaped
/// by then. Move-only.
class ControlGroup {
 public:
  /// `weight` is a multiple of the default weight. Errors: not_permitted, not_supported, system_error; the text says
  /// what is missing.
  static Result<ControlGroup> create(const std::string& name, double weight = 1);
  /// From now on all its processes together get the time of at most `processors` processors, in each tenth of a second.
  Status limit(double processors) const;
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&& other) noexcept;
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup();

  /// Moves the process, with all its threads, into the group.
  Status take(pid_t process) const;
  /// Removes the groups left behind by benches that were killed.
  static void sweep() noexcept;

 private:
  explicit ControlGroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace lrpc::bench
