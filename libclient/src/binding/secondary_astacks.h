// Growth of the supply of A-stacks (LRPC §5.2), the client's half: secondary regions, from the request to their return.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "lrpc/detail/client/binding/astack_list.h"
#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/call/region.h"

namespace lrpc::client {

/// The secondary regions of one Binding Object, which owns this. Thread-safe. Its destruction hangs up
/// every line. Precondition: no calls are outstanding.
///
/// At most one request is under way at a time, whatever the class. A caller that finds all A-stacks in use calls
/// look(), which asks or looks for the answer. The caller waits for the clerk no longer than it would for an A-stack.
class SecondaryAStacks {
 public:
  explicit SecondaryAStacks(BindingObject& binding) noexcept;
  SecondaryAStacks(const SecondaryAStacks&) = delete;
  SecondaryAStacks& operator=(const SecondaryAStacks&) = delete;

  [[nodiscard]] const SecondaryRecords& records() const noexcept { return records_; }

  enum class Look : std::uint8_t {
    added,    ///< There may be A-stacks now.
    waiting,  ///< A request is under way: look again soon. A grant wakes the callers that wait at a list.
    refused,  ///< There will be none for now.
  };
  /// Call it when all A-stacks of the class are in use: asks for more, or looks for the answer to the request that is
  /// under way. Blocks for some milliseconds, at most `limit`.
  [[nodiscard]] Look look(std::uint16_t astack_class, std::chrono::nanoseconds limit) noexcept;

  /// T17 on every secondary A-stack; none is added afterwards. Precondition: the binding's revoked flag is set.
  void revoke() noexcept;
  /// Does for the secondary A-stacks what BindingObject::set_call_timeout() does for the primary ones. Not while other
  /// threads use the binding.
  void trust_no_longer() noexcept;
  /// In a forked child: closes the descriptors.
  void forget_after_fork() noexcept;
  /// Returns to the server the regions that nobody has used since the previous call of this. True: a region or a
  /// request is left, so call it again later. Runs on the watcher's thread, under the library's lock.
  [[nodiscard]] bool return_unused();
  /// The number of A-stacks in all secondary regions, or in those of one class.
  [[nodiscard]] std::size_t count(std::optional<std::uint16_t> astack_class = {}) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Secondary {
    shim::Region region;    ///< Unmapped: the place is free.
    shim::PeerSocket line;  ///< None for a remote binding, whose A-stacks are private to this domain.
    std::uint16_t astack_class = 0;
    std::uint16_t count = 0;
    std::uint64_t used = 0;  ///< For return_unused(): sum of the generations when all were last idle, or kInUse.
  };
  struct Asked {
    shim::GrowthRequest request;
    shim::PeerSocket line;
    Clock::time_point when;
  };

  // Under asking_.
  [[nodiscard]] bool ask(std::uint16_t astack_class);
  [[nodiscard]] Look receive(std::chrono::milliseconds patience);
  [[nodiscard]] bool accept(const shim::GrowthRequest& request, std::uint16_t count, shim::ClosedAside fd,
                            shim::PeerSocket line);
  Look pause(std::chrono::milliseconds time) noexcept {
    not_before_ = Clock::now() + time;
    return Look::refused;
  }
  [[nodiscard]] std::optional<shim::GrowthRequest> request_for(std::uint16_t astack_class);

  void take_unused(std::uint16_t astack_class, std::vector<shim::LinkageRecord*>& idle, std::vector<Secondary>& unused);

  [[nodiscard]] shim::Stranger stranger() const { return {binding_.server().uid}; }

  BindingObject& binding_;
  SecondaryRecords records_;

  std::mutex asking_;
  std::optional<Asked> asked_;
  Clock::time_point not_before_{};
  bool distrusted_ = false;  ///< The clerk has sent an invalid answer: it is not asked again.

  mutable std::mutex mutex_;  ///< Never held while waiting for anything.
  std::array<Secondary, shim::kMostSecondaryRegions> places_;
};

}  // namespace lrpc::client
