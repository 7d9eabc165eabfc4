// What a procedure may ask about the call it executes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <typeindex>
#include <utility>
#include <vector>

#include "lrpc/detail/server/callback_port.h"
#include "lrpc/detail/server/handle_table.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/limits.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/stub_access.h"

namespace lrpc {

namespace server {

struct ServedAStack;
class ServedBinding;
class PrimedContext;

/// The first members of a ServedAStack: its linkage record, at the address of the ServedAStack, which the call path has
/// at hand, and the addresses of a call's arguments, which generated stubs read.
struct ArgumentPlace {
  shim::ServerLinkage linkage;
  std::byte* image = nullptr;
  std::byte* tail = nullptr;
};

/// Private memory of an E-stack for copies that are too large for its stack. It grows as needed; after the call at
/// most kKeep bytes are kept.
class Scratch {
 public:
  static constexpr std::size_t kKeep = 256 * 1024;
  /// Uninitialised memory, 64-byte aligned, valid until reset().
  [[nodiscard]] std::span<std::byte> take(std::size_t size);
  void reset() noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  std::unique_ptr<std::byte, Free> kept_;
  std::size_t kept_size_ = 0;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte, Free>> chunks_;
};

}  // namespace server

/// One for each thread that executes calls, set anew for each call. Valid only during the call and on that thread, and
/// not in a child that the procedure forks: there the region is not mapped, and locks of the server may stay locked.
class CallContext {
 public:
  CallContext() = default;
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;

  /// The caller's process, user and group, as the kernel gave them at bind time. For a caller on another host
  /// kNobodyHere: no process, and a user and group that nobody has.
  [[nodiscard]] const Credentials& caller() const noexcept;
  /// The caller on another host, as this machine's network domain reports it; null for callers on this host.
  [[nodiscard]] const Principal* remote() const noexcept;
  /// Identifies the binding through which the call came; unique in this server.
  [[nodiscard]] std::uint64_t binding_id() const noexcept;
  /// True if nobody wants the result any more: the caller gave up (its deadline, a cancellation), its domain is gone,
  /// or the deadline that the call carries has passed. Nobody waits for a one-way call, so for it only the last two are
  /// seen. Once this has been true because of the deadline, the call ends as call_aborted, whatever the procedure
  /// returns. Bounded work: a load or two.
  [[nodiscard]] bool abandoned() const noexcept;
  /// The time left until the deadline that the call carries; zero once it has passed, nullopt if there is none. The
  /// caller states at the call how much is left; the time counts from when this domain began the call. Calls that the
  /// procedure makes on this thread inherit the deadline (lrpc::CallScope). A few instructions.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining() const noexcept;
  /// The processor from which the caller says it calls; a hint (0xffff if it does not say).
  [[nodiscard]] std::uint16_t caller_processor() const noexcept { return shim::CallWord(word_).processor(); }
  /// Whether the caller says that it yields its processor while it waits; a hint.
  [[nodiscard]] bool caller_yields() const noexcept { return shim::CallWord(word_).caller_yields(); }

  /// The procedure's identifier: its place in the PDL.
  [[nodiscard]] std::uint16_t procedure() const noexcept { return shim::CallWord(word_).procedure(); }

  /// Adds an object to the binding's handle table; the handle is valid until it is closed or the binding ends
  /// (rundown). Throws std::length_error if the binding already holds HandleTable::kMaxHandles, its user
  /// ServerOptions::max_handles_per_user, or the host of a caller on another host its fair share of these (the call
  /// then ends as exception_escaped).
  template <class H, class T>
  [[nodiscard]] H grant(std::shared_ptr<T> object) {
    return H{grant_raw(H::TagType::kTag, typeid(T), std::move(object))};
  }
  /// The object behind a handle, or null if it is not open in this binding, of another handle type, or not a T.
  template <class T, class H>
  [[nodiscard]] std::shared_ptr<T> resolve(H handle) {
    return std::static_pointer_cast<T>(handles().resolve(handle.value, H::TagType::kTag, typeid(T)));
  }
  /// Like resolve(), and removes the handle from the table.
  template <class T, class H>
  [[nodiscard]] std::shared_ptr<T> close(H handle) {
    return std::static_pointer_cast<T>(handles().close(handle.value, H::TagType::kTag, typeid(T)));
  }
  /// Removes several handles from the table, or none: false unless all are open and no two are the same. Precondition:
  /// the procedure holds what resolve() returned for each.
  template <class... H>
  [[nodiscard]] bool close_together(H... several) {
    return handles().close_together(std::array<std::uint64_t, sizeof...(H)>{several.value...});
  }

 private:
  friend struct detail::StubAccess;
  friend class server::PrimedContext;

  /// The argument image and the out-of-band tail. The client may change them at any time.
  [[nodiscard]] std::byte* image() const noexcept { return place_->image; }
  [[nodiscard]] std::byte* tail() const noexcept { return place_->tail; }
  /// Where the text of an error may be put (told_text.h). The client may change it at any time.
  [[nodiscard]] std::span<std::byte> told_room() const noexcept;
  /// Private memory of this E-stack until the call returns. May be called several times. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> scratch(std::size_t size) {
    to_do_ |= kGiveScratchBack;
    return scratch_.take(size);
  }
  /// For calls back to the client, see <Interface>::callback().
  [[nodiscard]] server::CallbackPort& callback_port() const noexcept;
  [[nodiscard]] server::HandleTable& handles() const noexcept;
  std::uint64_t grant_raw(std::uint32_t tag, std::type_index type, std::shared_ptr<void> object);
  [[nodiscard]] const server::ServedAStack& astack() const noexcept;

  static constexpr std::uint8_t kEndLimited = 1;       ///< The call's limits are in force: restore the thread's.
  static constexpr std::uint8_t kToldOver = 2;         ///< abandoned() has reported that the deadline has passed.
  static constexpr std::uint8_t kGiveScratchBack = 4;  ///< A stub has taken scratch memory.

  mutable shim::CallLimits limits_{shim::Deadline(shim::Deadline::OfPeers())};  ///< Used if the call has a deadline.
  const server::ArgumentPlace* place_ = nullptr;                                ///< Of a ServedAStack.
  std::uint64_t word_ =
      ~std::uint64_t{0};            ///< The private copy of the call word; before the first call it names no processor.
  mutable std::uint8_t to_do_ = 0;  ///< What to do at the end of the call: the bits above.
  shim::CallLimits* around_ = nullptr;  ///< The thread's limits before a call that carries a deadline.
  server::Scratch scratch_;
};

/// A generated entry stub: copies and checks arguments, runs the procedure of `impl`, writes results.
/// Returns the call status (call_status in call_word.h). May throw; the call is then exception_escaped.
using EntryStub = std::uint16_t (*)(void* impl, CallContext& context);

}  // namespace lrpc
