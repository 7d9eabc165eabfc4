// What this machine exports to the network: lrpcd lists its names, and lrpc-netd says which of them other hosts may
// import.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etcd/published_name.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "network_path.client.h"

namespace lrpc::directory {

/// For one thread. Reconnects by itself.
class LocalNames {
 public:
  /// How many names are published at most; choose_names() chooses among more.
  static constexpr std::size_t kMost = 4096;

  struct Names {
    Host own = 0;  ///< This machine's address, as lrpc-netd knows it; 0: unknown.
    std::vector<shim::ListedName> exported;
    bool cut = false;  ///< There are more than kMost.
  };

  /// `nameserver`: the socket of lrpcd, as settled_nameserver() has it. Each connection goes to it.
  explicit LocalNames(std::string nameserver) : nameserver_(std::move(nameserver)) {}

  /// Asks lrpcd and lrpc-netd. Blocks at most some 10 s for each answer, usually far below a millisecond. Errors:
  /// no_nameserver, remote_unavailable (no lrpc-netd), not_permitted (lrpc-netd does not serve this user),
  /// limit_reached, timed_out, peer_gone.
  Result<Names> look();

 private:
  Status list(std::vector<shim::ListedName>& names);

  const std::string nameserver_;
  UniqueFd socket_;
  std::optional<netpath::NetworkPath::Client> network_;
};

}  // namespace lrpc::directory
