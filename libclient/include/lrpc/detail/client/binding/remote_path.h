// The remote branch (LRPC §5.1): a Binding Object with the remote bit uses this in place of a shared region.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::client {

class PendingCall;

/// The replies of a group's members to one call, as the network domain returned them (CallAll in network_path.lrpc).
/// Each reply has a head of kHead bytes (little-endian u32 host, u16 status, u16 zero, u32 length of the image), then
/// the image.
class GroupReplies {
 public:
  struct One {
    std::uint32_t host = 0;  ///< IPv4, in host order.
    std::uint16_t status = 0;
    std::span<const std::byte> image;  ///< Packed.
  };
  static constexpr std::size_t kHead = 12;
  /// Puts a reply at the front of `room`, and returns its length. Precondition: it fits.
  static std::size_t put(const One& one, std::span<std::byte> room) noexcept;

  GroupReplies(std::uint16_t status, std::size_t members, std::unique_ptr<std::byte[]> memory,
               std::size_t size) noexcept
      : status_(status), members_(members), memory_(std::move(memory)), left_(memory_.get(), size) {}
  /// The status of the call itself; 0: as many members have answered as the group needs.
  [[nodiscard]] std::uint16_t status() const noexcept { return status_; }
  /// How many members the group has.
  [[nodiscard]] std::size_t members() const noexcept { return members_; }
  /// The next reply, valid as long as this lives. nullopt: there are no more, or the rest is damaged.
  [[nodiscard]] std::optional<One> next() noexcept;
  [[nodiscard]] bool damaged() const noexcept { return !left_.empty(); }  ///< Valid once next() has returned nullopt.

 private:
  std::uint16_t status_;
  std::size_t members_;
  std::unique_ptr<std::byte[]> memory_;
  std::span<const std::byte> left_;
};

/// Carries a remote binding's calls from an A-stack in the client's own memory to the network domain and back. Owned by
/// the Binding Object. Thread-safe, but only the thread that holds an A-stack may pass its linkage record.
class RemotePath {
 public:
  virtual ~RemotePath() = default;

  /// Packs the arguments on the A-stack, makes the call, and unpacks the reply onto the A-stack. Returns the call
  /// status. Blocks for as long as the procedure runs, at most for call_timeout and for the time that CallScopes leave.
  [[nodiscard]] virtual std::uint16_t call(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;
  /// The same for a one-way call: when this returns, the network domain has the call. Returns 0 or a failure.
  [[nodiscard]] virtual std::uint16_t send(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;

  /// As call(), to all members of a group. Unpack each reply by put_reply(). Precondition: the procedure passes no
  /// handles. Errors: not_supported (the binding is not to a group), system_error (no memory).
  [[nodiscard]] virtual Result<GroupReplies> call_all(std::uint16_t procedure,
                                                      shim::LinkageRecord& linkage) noexcept = 0;
  /// Unpacks a member's reply with this status onto the A-stack, over the previous reply. Returns the call status.
  [[nodiscard]] virtual std::uint16_t put_reply(std::uint16_t procedure, shim::LinkageRecord& linkage,
                                                std::uint16_t status, std::span<const std::byte> image) noexcept = 0;

  /// Starts a call. Returns ok, or why no call was started. A call that the path cannot carry counts as started, and is
  /// ready at once: finish() refuses it as call() does.
  [[nodiscard]] virtual Errc start(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;
  /// The call to the network domain that carries a started call; none is taken() for one that the path cannot carry.
  /// This object owns it. Precondition: started, not finished.
  [[nodiscard]] virtual PendingCall& started(const shim::LinkageRecord& linkage) noexcept = 0;
  /// Ends a started call as call() does; drop() abandons it instead.
  [[nodiscard]] virtual std::uint16_t finish(shim::LinkageRecord& linkage) noexcept = 0;
  virtual void drop(shim::LinkageRecord& linkage) noexcept = 0;
  /// For BindingObject::let_go(): no further call is made, and the network domain sees the end. finish() and drop() end
  /// the calls that were started.
  virtual void let_go() noexcept = 0;

  /// grow() announces a secondary region in a place: calls may use its A-stacks from now on. False: no memory. shrink()
  /// announces the region's end, when nobody holds one of its A-stacks any more.
  [[nodiscard]] virtual bool grow(std::uint16_t place) noexcept = 0;
  virtual void shrink(std::uint16_t place) noexcept = 0;

  /// For calls from now on. Not while other threads use the path.
  virtual void set_call_timeout(std::chrono::milliseconds timeout) noexcept = 0;
};

}  // namespace lrpc::client
