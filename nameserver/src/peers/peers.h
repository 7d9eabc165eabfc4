// Connections: accepts them, receives and sends messages, and ends them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loop/event_loop.h"
#include "loop/listen_socket.h"
#include "lrpc/nameserver.h"
#include "peers/connection.h"
#include "peers/ended_sockets.h"
#include "quota/user_accounts.h"
#include "quota/user_log.h"

namespace lrpc::nameserver {

/// All connections, and what they and their users have. Everything is on the event loop's thread.
class Peers {
 public:
  /// The user of this class, which acts on what peers say.
  class Owner {
   public:
    virtual void on_message(Connection& peer, shim::BinderMessage message) = 0;
    /// The connection is about to be freed: nothing may point to it afterwards. May answer and doom others. Must not
    /// throw: it leaves out what there is no memory for.
    virtual void on_end(Connection& peer) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  /// The loop, the options and the owner must outlive it, and the loop must not be running when it is destroyed.
  Peers(EventLoop& loop, ListenSocket listener, const NameserverOptions& options, UserAccounts::QuotaSource quota_of,
        Owner& owner);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Begins to listen.
  Status begin();
  [[nodiscard]] const std::string& socket_path() const noexcept { return listener_.path(); }
  /// Null: it does not exist any more.
  [[nodiscard]] Connection* find(std::uint32_t serial) const noexcept;
  [[nodiscard]] UserAccounts& accounts() noexcept { return accounts_; }

  /// Queues what does not fit the socket. Dooms a peer that does not read its answers, or for whose answer there is no
  /// memory.
  void send(Connection& peer, std::uint32_t request, shim::BinderBody body);
  /// Answers with an error, as Failed::because_of() says it.
  void fail(Connection& peer, std::uint32_t request, const Error& error);
  /// Sends now or not at all: descriptors never wait in an outbox.
  Status send_with_fds(Connection& peer, const shim::BinderMessage& message);
  /// Whether `fds` descriptors can be sent to it. The kernel counts those in flight per user, over all of the
  /// nameserver's peers: so neither one peer nor all the peers of one user may use them up.
  [[nodiscard]] bool room_in_flight(Connection& peer, std::size_t fds);
  void protocol_error(Connection& peer, std::uint32_t request, std::string what);
  /// Ends a connection. It is freed by reap() at the end of the event, so that code at work on it can finish.
  void doom(Connection& peer);
  void reap();

  [[nodiscard]] bool short_of_memory() const { return options_.short_of_memory && options_.short_of_memory(); }
  void log(LogLevel level, std::string_view line) const;
  /// For lines that a peer can cause as often as it likes: rate-limited.
  void log_about(const shim::Credentials& peer, LogLevel level, std::string_view line);
  void log_refusal(const shim::Credentials& peer, const Error& why);

 private:
  void accept_peers();
  void pause_accepting();
  void admit(shim::PeerSocket socket);
  [[nodiscard]] bool set_up(Connection& peer);
  [[nodiscard]] Status room_for_one_more(const shim::Credentials& who);
  bool end_hung_up(uid_t user);
  bool take_connection_back(const shim::Credentials& newcomer);
  void on_ready(std::uint32_t serial, Readiness readiness);
  void hear(Connection& peer, Readiness readiness);
  void send_or_queue(Connection& peer, std::uint32_t request, shim::BinderBody body);
  void flush(Connection& peer);
  void refresh_in_flight(Connection& peer);
  void look_for_unread_soon();
  void set_unread_look();
  [[nodiscard]] bool look_for_unread();
  /// Logs why, and dooms it.
  void disconnect(Connection& peer, const char* why);
  void leave_alone(Connection& peer);

  EventLoop& loop_;
  ListenSocket listener_;
  const NameserverOptions& options_;
  Owner& owner_;
  EventLoop::WatchId listen_watch_ = 0;
  EventLoop::TimerId accept_pause_;
  EventLoop::Clock::time_point last_accepting_{};  ///< When the last turn ended, by busy_time().
  std::optional<uid_t> has_none_hung_up_;          ///< In this turn of accepting: the user that was looked at last.
  std::uint32_t last_serial_ = 0;
  std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> doomed_;
  UserAccounts accounts_;
  UserLog user_log_;
  EndedSockets ended_{accounts_};
  EventLoop::TimerId unread_look_;  ///< Set while there may be something that is not read.
};

}  // namespace lrpc::nameserver
