// One UserObject, served: the procedures of UserCalls (user_calls.lrpc).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/session_cache.h"
#include "lrpc/netrpc/user/user_object.h"
#include "lrpc/server.h"
#include "user_calls.server.h"

namespace lrpc::netuser {

/// The processes are not trusted: served_users.h says what they can do. Thread-safe.
class UserService {
 public:
  /// A process that is the protocol. The destructor detaches it from the graph.
  struct Attached {
    explicit Attached(UserObject& it) noexcept : user(it) {}
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;
    ~Attached() { end(); }
    /// Detaches the process. Any thread, outside the monitor; may be called more than once.
    void end() noexcept {
      const netrpc::Shepherd inside(user.host().monitor());
      if (!std::exchange(ended, true)) user.detach();
    }
    UserObject& user;
    bool ended = true;  ///< Under the monitor. True until attach() has succeeded.
  };
  using Protocol = Attached;  // the object behind the handle

  explicit UserService(UserObject& user) noexcept : user_(user) {}

  Result<UserCalls::CreateProtocolResults, UserCalls::Refused> CreateProtocol(CallContext& context) {
    auto process = std::make_shared<Attached>(user_);  // before attach(), so that nothing throws between the two
    {
      const netrpc::Shepherd inside(monitor());
      if (stopping_) return gone();
      if (const Status attached = user_.attach(); !attached) return refused(attached.error());
      process->ended = false;
      current_ = process;
      binding_ = context.binding_id();
    }
    return UserCalls::CreateProtocolResults{.protocol = context.grant<UserCalls::Protocol>(std::move(process)),
                                            .largest = static_cast<std::uint32_t>(user_.options().largest)};
  }

  Result<void, UserCalls::Refused> Enable(CallContext& /*context*/, Attached& process, bool wanted) {
    const netrpc::Shepherd inside(monitor());
    if (process.ended) return gone();
    user_.want(wanted);
    return {};
  }

  Result<std::uint64_t, UserCalls::Refused> Open(CallContext& /*context*/, Attached& process, std::uint32_t host,
                                                 std::uint16_t port) {
    const netrpc::Shepherd inside(monitor());
    if (process.ended) return gone();
    const auto session = user_.open_below(netrpc::HostAddress{host}, port);
    if (!session) return refused(session.error());
    return std::uint64_t{*session};
  }

  Result<void, UserCalls::Refused> Push(CallContext& /*context*/, Attached& process, std::uint64_t session,
                                        std::span<const std::byte> message) {
    const netrpc::Shepherd inside(monitor());
    if (process.ended) return gone();
    if (const Errc pushed = user_.push(session, message); pushed != Errc::ok) return refused(pushed, describe(pushed));
    return {};
  }

  Result<UserCalls::SizesResults, UserCalls::Refused> Sizes(CallContext& /*context*/, Attached& process,
                                                            std::uint64_t session) {
    const netrpc::Shepherd inside(monitor());
    if (process.ended) return gone();
    netrpc::Session* const found = user_.find(session);
    if (found == nullptr) return refused(Errc::invalid_argument, "no such session");
    netrpc::control::MaximumMessage largest;
    netrpc::control::OptimumMessage uncut;
    for (const Errc asked : {netrpc::control::ask(*found, largest), netrpc::control::ask(*found, uncut)})
      if (asked != Errc::ok) return refused(asked, describe(asked));
    const auto bounded = [&](std::size_t size) {
      return static_cast<std::uint32_t>(std::min(size, user_.options().largest));
    };
    return UserCalls::SizesResults{.largest = bounded(largest.size), .uncut = bounded(uncut.size)};
  }

  Result<void, UserCalls::Refused> CloseSession(CallContext& /*context*/, Attached& process, std::uint64_t session) {
    const netrpc::Shepherd inside(monitor());
    if (process.ended) return gone();
    user_.close(session);
    return {};
  }

  Result<UserCalls::AwaitResults, UserCalls::Refused> Await(CallContext& context, Attached& process, Buffer& message) {
    netrpc::Shepherd inside(monitor());
    while (!process.ended && !stopping_) {
      Upcall upcall;
      if (user_.take(upcall)) {
        (void)message.resize(upcall.message.size());  // UserObject::arrived() drops longer ones
        upcall.message.copy_to(message.contents());
        return UserCalls::AwaitResults{.session = upcall.session,
                                       .host = upcall.peer.host.value,
                                       .port = upcall.peer.port,
                                       .opened = upcall.opened};
      }
      const std::uint32_t seen = user_.going_to_wait();
      inside.unlock();
      user_.wait(seen, context.remaining().value_or(std::chrono::nanoseconds(-1)));
      inside.lock();
      user_.stopped_waiting();
      if (context.abandoned()) {
        user_.wake_another();
        return refused(Errc::call_aborted, "nobody waits any more");
      }
    }
    return gone();
  }

  void Close(CallContext& /*context*/, const std::shared_ptr<Attached>& process) { process->end(); }

  /// Called when the binding has ended: otherwise a thread in Await would wait for ever.
  void unbound(std::uint64_t binding) noexcept {
    std::shared_ptr<Attached> process;
    {
      const netrpc::Shepherd inside(monitor());
      if (binding_ == binding) process = current_.lock();
    }
    if (process) process->end();
  }
  /// Refuses new processes, and ends the present one: the destructor of Server waits for running procedures.
  void stop() noexcept {
    std::shared_ptr<Attached> process;
    {
      const netrpc::Shepherd inside(monitor());
      stopping_ = true;
      process = current_.lock();
    }
    if (process) process->end();
  }

 private:
  static Raise<UserCalls::Refused> refused(Errc code, std::string_view text) {
    return raise(UserCalls::Refused{.code = static_cast<std::uint16_t>(code), .text = String<200>::cut(text)});
  }
  static Raise<UserCalls::Refused> refused(const Error& error) { return refused(error.code, error.message()); }
  [[nodiscard]] netrpc::Monitor& monitor() const noexcept { return user_.host().monitor(); }
  static Raise<UserCalls::Refused> gone() { return refused(Errc::call_cancelled, "the protocol is closed"); }

  UserObject& user_;
  // Under the monitor:
  bool stopping_ = false;
  std::weak_ptr<Attached> current_;
  std::uint64_t binding_ = 0;
};

}  // namespace lrpc::netuser
