// What this machine exports to the network: lrpcd says which names there are, lrpc-netd which of them other hosts may
// import.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
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
  /// Names that are published at most; of more, those that choose_names() chooses.
  static constexpr std::size_t kMost = 4096;

  struct Names {
    Host own = 0;  ///< This machine's address, by the word of lrpc-netd; 0: not known.
    std::vector<shim::ListedName> exported;
    bool cut = false;  ///< There are more than kMost.
  };

  explicit LocalNames(std::string nameserver) : nameserver_(std::move(nameserver)) {}

  /// Asks both. Blocks at most some 10 s each, and usually far below a millisecond. Errors: no_nameserver,
  /// remote_unavailable (no lrpc-netd), not_permitted (lrpc-netd does not serve this user), timed_out, peer_gone.
  Result<Names> look();

 private:
  Status list(std::vector<shim::ListedName>& names);
  Result<shim::Listed> page(const std::string& after);

  const std::string nameserver_;
  UniqueFd socket_;
  std::optional<netpath::NetworkPath::Client> network_;
};

}  // namespace lrpc::directory
