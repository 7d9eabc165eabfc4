// The remote branch (LRPC §5.1): what a Binding Object with the remote bit set has instead of a region that it shares.
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

/// The replies of a group's members to one call, as the network domain gave them (CallAll in network_path.lrpc). Each
/// has a head of kHead bytes: u32 host, u16 status, u16 zero, u32 length of the image, little-endian; then the image.
class GroupReplies {
 public:
  struct One {
    std::uint32_t host = 0;  ///< IPv4, in host order.
    std::uint16_t status = 0;
    std::span<const std::byte> image;  ///< Packed.
  };
  static constexpr std::size_t kHead = 12;
  /// Puts a reply to the front of `room`, and returns its length. Precondition: it has room for it.
  static std::size_t put(const One& one, std::span<std::byte> room) noexcept;

  GroupReplies(std::uint16_t status, std::size_t members, std::unique_ptr<std::byte[]> memory,
               std::size_t size) noexcept
      : status_(status), members_(members), memory_(std::move(memory)), left_(memory_.get(), size) {}
  /// The call's own; 0: as many have answered as the group needs.
  [[nodiscard]] std::uint16_t status() const noexcept { return status_; }
  /// That the group has.
  [[nodiscard]] std::size_t members() const noexcept { return members_; }
  /// nullopt: there are no more, or what follows is damaged. Valid as long as this lives.
  [[nodiscard]] std::optional<One> next() noexcept;
  [[nodiscard]] bool damaged() const noexcept { return !left_.empty(); }  ///< When there is no next one.

 private:
  std::uint16_t status_;
  std::size_t members_;
  std::unique_ptr<std::byte[]> memory_;
  std::span<const std::byte> left_;
};

/// The way of one remote binding's calls, from an A-stack in the client's own memory to the network domain and back.
/// Owned by the Binding Object. Thread-safe; of one A-stack, only its holder says anything.
class RemotePath {
 public:
  virtual ~RemotePath() = default;

  /// Packs the arguments on the A-stack, has the call made, and unpacks what came back onto the A-stack. Returns the
  /// call status. Blocks for as long as the procedure runs, at most call_timeout and what CallScopes leave.
  [[nodiscard]] virtual std::uint16_t call(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;
  /// The same for a call whose return nobody waits for: when it returns, the network domain has the call. 0, or a
  /// failure.
  [[nodiscard]] virtual std::uint16_t send(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;

  /// As call(), to all members of a group. Each reply is put_reply()'s to unpack. Errors: system_error (no memory).
  [[nodiscard]] virtual Result<GroupReplies> call_all(std::uint16_t procedure,
                                                      shim::LinkageRecord& linkage) noexcept = 0;
  /// Unpacks a member's reply with this status onto the A-stack, in the place of the one before. The call status.
  [[nodiscard]] virtual std::uint16_t put_reply(std::uint16_t procedure, shim::LinkageRecord& linkage,
                                                std::uint16_t status, std::span<const std::byte> image) noexcept = 0;

  /// Starts a call. ok, or why nothing was started.
  [[nodiscard]] virtual Errc start(std::uint16_t procedure, shim::LinkageRecord& linkage) noexcept = 0;
  /// The call to the network domain that stands for a started one; owned by this. Precondition: started, not finished.
  [[nodiscard]] virtual PendingCall& started(const shim::LinkageRecord& linkage) noexcept = 0;
  /// The end of a started call, as of call(); letting it go instead.
  [[nodiscard]] virtual std::uint16_t finish(shim::LinkageRecord& linkage) noexcept = 0;
  virtual void drop(shim::LinkageRecord& linkage) noexcept = 0;
  /// The binding has been let go: no further call is made, and the network domain sees the end. finish() and drop() end
  /// what was started.
  virtual void let_go() noexcept = 0;

  /// A secondary region in a place: from now on calls may come with its A-stacks. False: no memory. And its end: nobody
  /// holds one of them any more.
  [[nodiscard]] virtual bool grow(std::uint16_t place) noexcept = 0;
  virtual void shrink(std::uint16_t place) noexcept = 0;

  /// Of the calls from now on. Not while others use the path.
  virtual void set_call_timeout(std::chrono::milliseconds timeout) noexcept = 0;
};

}  // namespace lrpc::client
