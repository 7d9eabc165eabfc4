// What a path to a group knows of its members, and what it makes of their replies.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/shim/binder/told_text.h"
#include "path_service.h"

namespace lrpc::netpath {

/// Each member has a path of its own, so that keepalives, silence and UNBINDs are the same as for single hosts. A call
/// goes to all members at once, as one GROUP_CALL with the keys of all these paths.
class PathService::Members {
 public:
  struct Member {
    HostAddress host = 0;
    std::shared_ptr<Path> path{};  ///< Null, or ended: it is not bound at present.
    Clock::time_point tried{};     ///< When this host last tried to bind it.
    bool lost = false;             ///< It has answered that it knows no such binding.
    std::string why{};             ///< Why that failed; printable. Empty: it did not fail, or was not tried.
    [[nodiscard]] bool bound() const noexcept { return path != nullptr && !path->has_ended(); }
    /// The key of its present binding; all zero if there is none.
    [[nodiscard]] BindingKey key() const noexcept { return bound() ? path->key() : BindingKey(); }
  };

  Members(std::string called, const std::vector<HostAddress>& hosts, Needed images, BindMessage bind)
      : name(std::move(called)), needed(std::move(images)), message(std::move(bind)) {
    for (const HostAddress host : hosts) all.push_back({host});
  }

  /// The text of `error` for group_bindings(): printable, cut, without `at`, which names the member. Another host may
  /// have written it.
  [[nodiscard]] static std::string why_not(const Error& error, std::string_view at);

  const std::string name;  ///< The group's.
  const Needed needed;
  const BindMessage message;  ///< Its wait_ms is 0.
  std::mutex mutex;
  std::vector<Member> all;  ///< Their number never changes. Under the mutex.
};

/// The members' answers to one call. Used under the transport's own lock, and by the caller when the call has returned.
class PathService::Answers final : public Collation {
 public:
  /// `room`: for CallAll's replies, as many as fit; empty: they are not wanted.
  explicit Answers(Members& members, std::span<std::byte> room = {}) noexcept : members_(members), room_(room) {}
  /// Results and errors that the procedure raises are answers. Any other error is none: there is no such binding, no
  /// server, or the procedure says by it that it could not do what was asked.
  [[nodiscard]] bool counts(std::span<const std::byte> reply) noexcept override;
  void said(HostAddress member, Errc outcome, std::span<const std::byte> reply) noexcept override;
  /// The keys with which the members are called now: as many as members.
  [[nodiscard]] std::span<const BindingKey> take_keys();
  /// Whether a member has answered that the key it was called with is none of its bindings any more.
  [[nodiscard]] bool ended(std::size_t member, const BindingKey& key) const noexcept {
    return ended_.test(member) && keys_[member] == key;
  }
  /// Bytes of `room` that are filled.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool any_ended() const noexcept { return ended_.any(); }
  /// The status of the first error that a member has answered, and its text; 0: there is none.
  [[nodiscard]] std::uint16_t failure() const noexcept { return failure_; }
  [[nodiscard]] std::span<const std::byte> text() const noexcept { return std::span(text_).first(text_size_); }

 private:
  void put(HostAddress member, std::uint16_t status, std::span<const std::byte> image) noexcept;

  Members& members_;
  std::span<std::byte> room_;
  std::size_t size_ = 0;
  std::uint16_t failure_ = 0;
  std::array<std::byte, shim::kMostTold> text_{};
  std::size_t text_size_ = 0;
  std::array<BindingKey, kMaxMembers> keys_{};
  std::bitset<kMaxMembers> ended_;  ///< Members that do not know their key.
};

}  // namespace lrpc::netpath
