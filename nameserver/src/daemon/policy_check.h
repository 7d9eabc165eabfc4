// lrpcd --check-policy: checks a policy, prints what it says, or what it would decide.
#pragma once

#include <string>
#include <vector>

#include "lrpc/detail/nameserver/policy.h"

namespace lrpc::nameserver {

struct PolicyQuestion {
  std::string file;
  ExportRule export_rule = ExportRule::own_user;
  std::string as;                    ///< A user, by name or number; empty: the calling user.
  std::string daemon_user;           ///< The same: the user that lrpcd runs as.
  std::vector<std::string> exports;  ///< Names: may that user export them?
  std::vector<std::string> imports;
};

/// Prints to the standard output, errors to the standard error. The exit status: 0 if the file is right and everything
/// asked about is allowed, 1 if the file is wrong, 2 if something is denied.
int check_policy(const PolicyQuestion& question);

}  // namespace lrpc::nameserver
