// lrpcd --check-policy: is it right, what does it say, and what would it decide?
#pragma once

#include <string>
#include <vector>

#include "lrpc/detail/nameserver/policy.h"

namespace lrpc::nameserver {

struct PolicyQuestion {
  std::string file;
  ExportRule export_rule = ExportRule::own_user;
  std::string as;                    ///< A user, by name or number; empty: the user that asks.
  std::string daemon_user;           ///< The same: as which lrpcd runs.
  std::vector<std::string> exports;  ///< Names: may that user export them?
  std::vector<std::string> imports;
};

/// Prints to the standard output, errors to the standard error. The exit status: 0 if the file is right and everything
/// asked about is allowed, 1 if the file is wrong, 2 if something is denied.
int check_policy(const PolicyQuestion& question);

}  // namespace lrpc::nameserver
