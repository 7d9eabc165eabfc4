// The policy of a running lrpcd: from its file at the start, and again whenever SIGHUP comes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/nameserver.h"
#include "policy_reader.h"

namespace lrpc::nameserver {

/// SIGHUP has the file read again, by another process. When that has answered, the new policy is in force, or the log
/// says what is wrong with it and the old one stays.
class DaemonPolicy {
 public:
  /// Reads `path`; if there is no such file and it need not exist, the default policy holds until there is one. Empty:
  /// the default policy for good, and SIGHUP is none of its business. Forks (PolicyReader::start). Errors: what
  /// load_policy_source() and FilePolicy::compile() say.
  static Result<DaemonPolicy> open(const std::string& path, bool must_exist, ExportRule rule);
  DaemonPolicy(DaemonPolicy&&) = default;
  DaemonPolicy& operator=(DaemonPolicy&&) = delete;

  /// Puts the policy, and what is to be watched, into the options, whose log is there. Must outlive the nameserver.
  void apply_to(NameserverOptions& options);
  /// Before the nameserver runs.
  void change_policy_of(Nameserver& nameserver) { reload_->nameserver = &nameserver; }

 private:
  /// What the event loop's handlers refer to: it stays where it is.
  struct Reload {
    std::optional<PolicyReader> reader;
    UniqueFd signal;
    ExportRule rule = ExportRule::own_user;
    std::function<void(LogLevel, std::string_view)> log;
    Nameserver* nameserver = nullptr;

    bool on_signal();
    bool on_answer();
    /// Puts what was read into force, or says why not; false if nothing will ever be read again.
    bool install(Result<PolicySource> source);
    /// Says so, and why.
    void stays(const Error& why) const;
  };

  DaemonPolicy() : reload_(std::make_unique<Reload>()) {}
  std::shared_ptr<Policy> policy_;
  std::string read_;  ///< What the log is to say first.
  std::unique_ptr<Reload> reload_;
};

}  // namespace lrpc::nameserver
