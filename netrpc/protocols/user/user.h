// User-level protocols (The x-Kernel §II.E): a program's own protocol objects, made of procedures instead of a class.
//
//   UserProtocol  at the top of a graph: opens and enables below, receives and serves. Its procedures run inside the
//                 monitor, like any protocol's.
//   UserLayer     in the middle: sees and changes what goes through it, such as a header of the program's own.
//   UserProgram   the way in for threads that are not inside the monitor: each operation enters it, and the program's
//                 procedures are called outside.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

/// The operations of a UserProtocol. An operation that is not given does what Protocol does. All are called inside the
/// monitor and must not throw.
struct UserOperations {
  /// demux: a message has come through `from`.
  std::function<void(Session& from, Message message)> receive{};
  /// call_demux: answer with from.reply(), now, or later with a SessionRef kept until then.
  std::function<void(Session& from, Message request)> serve{};
  /// open_done: the layer below has made a session for this protocol.
  std::function<Errc(Session& lower, const ParticipantSet& participants)> opened{};
  /// Errc::not_supported: Protocol's own answer is taken.
  std::function<Errc(control::Request& request)> control{};
  /// The answer to AdvertisedMaximum: the largest message that is ever pushed.
  std::size_t largest = 1500;
};

/// A program's protocol object at the top of a graph.
class UserProtocol final : public Protocol {
 public:
  /// `below`: what it stands on; outlives it.
  UserProtocol(Host& host, std::string name, std::vector<Protocol*> below, UserOperations operations = {})
      : Protocol(host, std::move(name)),
        below_(std::move(below)),
        operations_(std::make_shared<const UserOperations>(std::move(operations))) {}

  /// Replaces the operations: a program that takes its protocol out of a composed graph gives it its procedures then.
  /// Call it inside the monitor.
  void set_operations(UserOperations operations) {
    operations_ = std::make_shared<const UserOperations>(std::move(operations));
  }
  [[nodiscard]] Protocol& below(std::size_t index = 0) const { return *below_.at(index); }

  /// Call open(), open_enable() or open_disable() of the protocol below with this index, on behalf of this protocol.
  /// Errors: those of the operation that is called.
  Result<SessionRef> open_below(const ParticipantSet& participants, std::size_t index = 0) {
    return below(index).open(*this, participants);
  }
  Status enable_below(const ParticipantSet& participants, std::size_t index = 0) {
    return below(index).open_enable(*this, participants);
  }
  void disable_below(const ParticipantSet& participants, std::size_t index = 0) noexcept {
    if (index < below_.size()) below_[index]->open_disable(*this, participants);
  }

  [[nodiscard]] Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    const auto operations = operations_;
    return operations->opened ? operations->opened(lower, participants) : Protocol::open_done(lower, participants);
  }
  void demux(Session& lower, Message message) noexcept override {
    const auto operations = operations_;
    if (!operations->receive) return Protocol::demux(lower, std::move(message));
    ++counted.received;
    operations->receive(lower, std::move(message));
  }
  void call_demux(Session& lower, Message request) noexcept override {
    const auto operations = operations_;
    if (!operations->serve) return Protocol::call_demux(lower, std::move(request));
    ++counted.received;
    operations->serve(lower, std::move(request));
  }
  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    const auto operations = operations_;
    if (operations->control)
      if (const Errc answer = operations->control(request); answer != Errc::not_supported) return answer;
    if (control::answered(request, control::AdvertisedMaximum{operations->largest})) return Errc::ok;
    return Protocol::control(request);
  }

 private:
  const std::vector<Protocol*> below_;
  std::shared_ptr<const UserOperations> operations_;  ///< A running operation keeps these while others replace them.
};

/// The operations of a UserLayer. If one is not given, messages pass unchanged. `lower` is the session below; `session`
/// is the layer's own, to be handed to `high`. Called inside the monitor; must not throw. `timeout` may be kNoLimit, to
/// which nothing can be added: use deadline_after().
struct UserLayerOperations {
  std::function<Errc(Session& lower, Message message)> push{};
  std::function<void(Session& session, Protocol& high, Message message)> demux{};
  std::function<void(Session& lower, Message request, Transaction& transaction, Duration timeout)> call{};
  std::function<void(Session& session, Protocol& high, Message request)> call_demux{};
  std::function<void(Session& lower, Message reply)> reply{};
  /// Bytes that push puts in front of a message: MaximumMessage and OptimumMessage are smaller by this above the layer,
  /// AdvertisedMaximum is larger by this below it.
  std::size_t header = 0;
};

/// A kind whose instances are UserProtocols over one protocol that provides `needs`. Take them out of the graph with
/// find().
[[nodiscard]] ProtocolKind user_kind(std::string name, Service needs, UserOperations operations = {});
/// A kind whose instances are layers in the middle; they provide the service of the protocol below.
[[nodiscard]] ProtocolKind user_layer_kind(std::string name, UserLayerOperations operations);

class UserProgram;

/// A session for threads outside the monitor: each operation enters the monitor. Must not outlive the graph.
class UserSession {
 public:
  UserSession() = default;
  UserSession(UserSession&&) noexcept = default;
  UserSession& operator=(UserSession other) noexcept {
    std::swap(session_, other.session_);
    return *this;
  }
  ~UserSession();

  /// Blocks only to enter the monitor. Errors: Session::push's.
  [[nodiscard]] Errc push(Message message) {
    const Shepherd inside(session_->protocol().host().monitor());
    return session_->push(std::move(message));
  }
  /// Blocks until the reply is there, `timeout` (as Session::call's) has passed or the peer is found gone. Errors:
  /// Transaction::completed's. On failure `reply` is untouched.
  [[nodiscard]] Errc call(Message request, Message& reply, Duration timeout = kNoLimit);
  [[nodiscard]] Errc control(control::Request& request) {
    const Shepherd inside(session_->protocol().host().monitor());
    return session_->control(request);
  }
  explicit operator bool() const noexcept { return static_cast<bool>(session_); }

 private:
  friend class UserProgram;
  explicit UserSession(SessionRef session) noexcept : session_(std::move(session)) {}
  SessionRef session_;
};

/// Thread-safe access to a UserProtocol. It replaces the protocol's operations until it is destroyed; must not outlive
/// it.
class UserProgram {
 public:
  /// Called by whichever thread shepherds the message, outside the monitor: may block and may call into the graph
  /// through a UserProgram or UserSession; several calls may run at a time. Must not throw.
  struct Procedures {
    std::function<void(HostAddress from, Message message)> receive{};
    /// Returns the reply.
    std::function<Message(HostAddress from, Message request)> serve{};
    std::size_t largest = 1500;  ///< As UserOperations::largest.
  };

  /// Enters the monitor.
  UserProgram(UserProtocol& protocol, Procedures procedures);
  UserProgram(const UserProgram&) = delete;
  UserProgram& operator=(const UserProgram&) = delete;
  /// Waits until no procedure runs. Must not be called from one of them.
  ~UserProgram();

  Result<UserSession> open(const ParticipantSet& participants);
  Status enable(const ParticipantSet& participants) {
    const Shepherd inside(protocol_.host().monitor());
    return protocol_.enable_below(participants);
  }
  void disable(const ParticipantSet& participants) {
    const Shepherd inside(protocol_.host().monitor());
    protocol_.disable_below(participants);
  }
  /// A message with a copy of `data`, of any size. Not allocated(): the pool has no more.
  [[nodiscard]] Message message(std::span<const std::byte> data) {
    return Message::copy_of_long(protocol_.host().pool(), data);
  }

 private:
  struct Shared;
  UserProtocol& protocol_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace lrpc::netrpc
