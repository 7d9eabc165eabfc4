// Control groups for processor time, version 1 or 2: for hogs and callers that do not compete as equals.
#pragma once

#include <sys/types.h>

#include <string>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

/// One group under the root of the hierarchy, removed with this object: its processes must have ended (and been reaped)
/// by then. Move-only.
class ControlGroup {
 public:
  /// `weight` is in units of the ordinary one. Errors: not_permitted, not_supported, system_error, with what is
  /// missing.
  static Result<ControlGroup> create(const std::string& name, double weight = 1);
  /// From now on all its processes together get so many processors' time, in each tenth of a second.
  Status limit(double processors) const;
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&& other) noexcept;
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup();

  /// Moves the process with all its threads.
  Status take(pid_t process) const;
  /// Removes groups that benches which were killed have left behind.
  static void sweep() noexcept;

 private:
  explicit ControlGroup(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace lrpc::bench
