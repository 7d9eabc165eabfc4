// Unmaps the regions of ended bindings where nobody waits for that.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/detail/shim/system/watcher.h"
#include "quota/accounts.h"

namespace lrpc::server {

/// To free a GiB that a client has written to takes the kernel some tenths of a second. No clerk, E-stack or poller may
/// spend that for one client while others wait. So large regions are unmapped on this object's own thread, one after
/// the other, whoever releases them last; without memory for a thread, by whoever that is. Thread-safe. Its destruction
/// waits for the thread.
class Unmapper : public std::enable_shared_from_this<Unmapper> {
  struct Last {
    Share share;  ///< Given back after the region is unmapped.
    shim::Region region;
  };

 public:
  /// From this size on a region is large. To free a smaller one takes a millisecond or two at most.
  static constexpr std::uint64_t kLarge = std::uint64_t{4} << 20;
  /// So many bytes of a user may have ended, and not be unmapped yet, without counting as its region's bytes: so a
  /// client at its quota that ends a binding can bind anew at once. What is more counts until it is unmapped: otherwise
  /// a client that binds and ends again and again could make the server hold any amount.
  static constexpr std::uint64_t kUncounted = limits::kMaxRegionSize;

  /// One region's place in the line, with what its bytes count for. It has the memory that it needs from the
  /// beginning, so that nothing fails at the end. Move-only; not thread-safe.
  class Place {
   public:
    Place() noexcept = default;  ///< The region counts for nothing, and is unmapped at once.
    /// Nobody uses the region any more, but threads may hold it: its bytes count no longer, or as above.
    void settle() noexcept;
    /// Settles, and unmaps the region, or leaves that to the thread. Once.
    void unmap(shim::Region region) noexcept;

   private:
    friend Unmapper;
    std::shared_ptr<Unmapper> unmapper_;  ///< Null: the region is not large.
    bool settled_ = false;
    std::list<Last> last_;  ///< One.
  };
  /// For a region of so many bytes, for which `share` counts. Throws std::bad_alloc.
  [[nodiscard]] Place place_for(std::uint64_t bytes, Share share);
  /// For tests: its thread.
  [[nodiscard]] shim::Watcher& thread() noexcept { return thread_; }

 private:
  void unmap(std::list<Last>& one) noexcept;
  void unmap_all() noexcept;

  std::mutex mutex_;
  std::list<Last> waiting_;
  const shim::Watcher::Task unmap_all_{[this] { unmap_all(); }};
  shim::Watcher thread_{"lrpc-unmap"};
};

}  // namespace lrpc::server
