// The policy of a running lrpcd: from its file at the start, and again whenever SIGHUP comes.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/nameserver.h"
#include "policy_reader.h"

namespace lrpc::nameserver {

/// Blocks the signals, which from now on arrive as readability of the result. On failure it is empty; errno.
UniqueFd take_signals(std::initializer_list<int> signals);

/// On SIGHUP another process reads the file again. After its answer the new policy is in force, or the log says what is
/// wrong with it and the old one stays.
class DaemonPolicy {
 public:
  /// Reads `path`. If it does not exist and need not, the default policy applies until there is a file; a symbolic link
  /// to what does not exist is an error. Empty: the default policy always applies, and SIGHUP is not handled. Forks
  /// (PolicyReader::start). Errors: those of load_policy_source() and FilePolicy::compile().
  static Result<DaemonPolicy> open(const std::string& path, bool must_exist, ExportRule rule);
  DaemonPolicy(DaemonPolicy&&) = default;
  DaemonPolicy& operator=(DaemonPolicy&&) = delete;

  /// Sets the policy and the extra watches in the options, whose log must be set. Must outlive the nameserver.
  void apply_to(NameserverOptions& options);
  /// Call it before the nameserver runs.
  void change_policy_of(Nameserver& nameserver) { reload_->nameserver = &nameserver; }

 private:
  /// The event loop's handlers point to it, so it must not move.
  struct Reload {
    std::optional<PolicyReader> reader;
    UniqueFd signal;
    ExportRule rule = ExportRule::own_user;
    std::function<void(LogLevel, std::string_view)> log;
    Nameserver* nameserver = nullptr;

    bool on_signal();
    bool on_answer();
    /// Logs that the policy stays as it is, and why.
    void stays(const Error& why) const;
  };

  DaemonPolicy() : reload_(std::make_unique<Reload>()) {}
  std::shared_ptr<Policy> policy_;
  std::string read_;  ///< The first line for the log.
  std::unique_ptr<Reload> reload_;
};

}  // namespace lrpc::nameserver
