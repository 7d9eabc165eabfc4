// Growth of the supply of A-stacks (LRPC §5.2), the server's half: secondary regions and how they count.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "call/served_binding.h"
#include "estacks/estack_pool.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "quota/accounts.h"

namespace lrpc::server {

/// One secondary region and its A-stacks, all of one class. Shared like a ServedBinding: E-stacks and pollers hold it
/// by as_binding(), so it is unmapped (unmapper.h) when the last of them has left its A-stacks.
class SecondaryRegion {
 public:
  SecondaryRegion(std::shared_ptr<ServedBinding> binding, const shim::GrowthRequest& granted, shim::Region region,
                  shim::PeerSocket line, Share share, Unmapper::Place unmapping, Share descriptor);
  SecondaryRegion(const SecondaryRegion&) = delete;
  SecondaryRegion& operator=(const SecondaryRegion&) = delete;
  ~SecondaryRegion();

  [[nodiscard]] uid_t user() const noexcept { return binding_->user(); }
  [[nodiscard]] std::uint16_t place() const noexcept { return place_; }
  [[nodiscard]] std::span<ServedAStack> astacks() noexcept { return astacks_; }
  [[nodiscard]] int line() const noexcept { return line_.get(); }
  void hang_up() noexcept { line_.hang_up(); }
  /// A pointer to the binding that keeps this region alive, too.
  [[nodiscard]] static std::shared_ptr<ServedBinding> as_binding(const std::shared_ptr<SecondaryRegion>& region) {
    return {region, region->binding_.get()};
  }
  /// From now on no call on it begins: the client has given it back, or the binding is revoked (then revoke_words(),
  /// too).
  void close() noexcept {
    for (ServedAStack& astack : astacks_) astack.entry_count.store(0, std::memory_order_release);
  }
  void revoke_words() noexcept {
    for (ServedAStack& astack : astacks_) revoke_word_of(astack);
  }
  /// After close(), once it is in no list: if no procedure runs on it, gives back its share. False: one may run; try
  /// again (Accounts::settle_later()). By one thread at a time.
  [[nodiscard]] bool settle() noexcept;

  std::uint64_t line_watch = 0;  ///< The clerk's.

 private:
  Share share_;
  Unmapper::Place unmapping_;
  const Share descriptor_;
  const std::shared_ptr<ServedBinding> binding_;
  const std::uint16_t place_;
  shim::Region region_;
  shim::PeerSocket line_;
  std::vector<ServedAStack> astacks_;
  bool settled_ = false;
};

/// The clerk's work on them, for all bindings of a domain.
class SecondaryRegions {
 public:
  /// The references must outlive it, but it may be constructed before them.
  SecondaryRegions(const ServerOptions& options, shim::Watcher& watcher, EStackPool& estacks,
                   std::shared_ptr<Accounts> accounts, std::shared_ptr<Unmapper> unmapper)
      : options_(options),
        watcher_(watcher),
        estacks_(estacks),
        accounts_(std::move(accounts)),
        unmapper_(std::move(unmapper)) {}

  /// The client asks for more A-stacks: grants or refuses, with an answer on the line. On the watcher's thread.
  void grow(const std::shared_ptr<ServedBinding>& binding, shim::PeerSocket line);
  /// The binding has been revoked: ends its secondary regions. Not while the watcher may still add some.
  void end(ServedBinding& binding);

  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] Status try_grow(const std::shared_ptr<ServedBinding>& binding, shim::PeerSocket& line);
  void on_line(ServedBinding& binding, const std::shared_ptr<SecondaryRegion>& region);

  const ServerOptions& options_;
  shim::Watcher& watcher_;
  EStackPool& estacks_;
  const std::shared_ptr<Accounts> accounts_;
  const std::shared_ptr<Unmapper> unmapper_;
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace lrpc::server
