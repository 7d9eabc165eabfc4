// The declarations of clients that call Sun RPC programs: untrusted texts, from which the types of their values are
// compiled. A false declaration harms only the calls of its own client.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/shares.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::sun {

/// Compiles each text once for a user, and keeps the result for as long as somebody holds it. Thread-safe.
class Declarations {
 public:
  /// `most`: bytes of all texts that are kept. One user gets at most half of them, and beside other users its fair
  /// share. The compiled form takes some 30 times as much.
  explicit Declarations(std::size_t most = 1024 * 1024) : most_(most) {}

  /// The interface that `text` declares, with every procedure fit for XDR. Blocks while another text of that user is
  /// compiled, and for the work on this one, which its length bounds. Errors: interface_mismatch (it is no canonical
  /// declaration, or not of this version of lrpc), not_supported (a procedure passes handles, or there are callbacks;
  /// the text names them), limit_reached (the user has too many). Throws std::bad_alloc alone.
  [[nodiscard]] Result<std::shared_ptr<const stubgen::Interface>> compiled(uid_t user, const std::string& text);

 private:
  using Key = std::pair<uid_t, std::string>;
  struct Known {
    std::weak_ptr<const stubgen::Interface> interface;
    shim::UserShares::Part part;
  };

  const std::size_t most_;
  std::mutex mutex_;
  shim::UserShares bytes_;  ///< Of the texts that are known.
  std::map<Key, Known> known_;
  std::set<uid_t> compiling_;  ///< Users whose text is compiled now: one text each, to save memory.
  std::condition_variable compiled_;
};

}  // namespace lrpc::sun
