// USER: the protocol object at the top of a graph that represents a process (The x-Kernel §II.A: user processes
// masquerade as protocol objects). ServedUsers serves it to that process.
//
// The graph's line limits the process: to one protocol number, so that it cannot speak for other protocols of the host,
// and to a number of sessions, messages and bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "lrpc/detail/shim/system/sleeping_word.h"
#include "lrpc/netrpc/fifo_queue.h"
#include "lrpc/netrpc/graph.h"

namespace lrpc::netuser {

/// Names a session towards the process; never used again. 0 is none.
using SessionNumber = std::uint64_t;

struct UserOptions {
  std::string name;                       ///< Processes find it by this name.
  netrpc::ProtocolNumber number = 0;      ///< Identifies it to the protocol below.
  std::size_t largest = 1500;             ///< Bytes of a message that the process pushes, at most kLargest.
  std::size_t sessions = 256;             ///< The most that the process opens, and as many that peers make.
  std::size_t queue = 256;                ///< Messages that wait for the process,
  std::size_t queue_bytes = 1024 * 1024;  ///< and bytes of their buffers; further ones are dropped.

  static constexpr std::size_t kLargest = 65'536;
  static constexpr std::size_t kMostSessions = 65'536;
  static constexpr std::size_t kMostQueue = 65'536;
};

/// The name under which a USER is exported: "lrpc.user." and its own. Names with "lrpc." never go to other hosts.
[[nodiscard]] std::string exported_name(const std::string& user);

/// The options of a line of the graph. Errors: invalid_argument, with the option's name in the text. A pure function.
[[nodiscard]] Result<UserOptions> user_options(const netrpc::Options& options);

/// A message on its way to the process.
struct Upcall {
  SessionNumber session = 0;
  netrpc::Participant peer;
  bool opened = false;  ///< The first message of a session that the peer has made.
  netrpc::Message message;
};

/// The protocol object. Call all operations inside the monitor, except wait() and wake_all(); only wait() blocks. It
/// drops messages that arrive while there is no process, or while the host is short of memory.
class UserObject final : public netrpc::Protocol {
 public:
  /// The object is enabled at the protocol below as long as it lives. Errors: those of open_enable() there.
  static Result<std::unique_ptr<UserObject>> make(const netrpc::InstanceParts& parts, UserOptions options);
  ~UserObject() override;

  [[nodiscard]] const UserOptions& options() const noexcept { return options_; }

  // ---- the process's calls into the graph ----

  /// Attaches a process. Errors: name_taken (there is one already, or it has died and that is not known yet),
  /// limit_reached (the host is short of memory).
  Status attach();
  /// Detaches the process: closes its sessions, drops the messages that wait for it, and ends all wait()s.
  void detach() noexcept;
  void want(bool messages_of_strangers) noexcept { wanted_ = messages_of_strangers; }
  /// Errors: those of the protocol below; limit_reached (UserOptions::sessions, or the host is short of
  /// memory).
  Result<SessionNumber> open_below(netrpc::HostAddress host, std::uint16_t port);
  /// Copies `data`, which another process may change meanwhile, once. Errors: invalid_argument (no such session),
  /// message_too_long, limit_reached (no buffers), and those of Session::push().
  [[nodiscard]] Errc push(SessionNumber session, std::span<const std::byte> data);
  /// The session with this number; do not keep the pointer. Null: there is none.
  [[nodiscard]] netrpc::Session* find(SessionNumber session) noexcept;
  void close(SessionNumber session) noexcept;

  // ---- the graph's calls of the process ----

  /// Takes the message that has waited longest. False: none waits.
  [[nodiscard]] bool take(Upcall& upcall) noexcept;
  /// Call it inside the monitor when take() has found nothing. Returns the value for wait(), to be called outside.
  [[nodiscard]] std::uint32_t going_to_wait() noexcept {
    ++waiting_;
    return arrivals_.look();  // P2: for messages it changes only inside the monitor
  }
  /// Blocks, at most `limit` (negative: without), until something may have arrived or changed since going_to_wait().
  /// Outside the monitor; then stopped_waiting() inside. Spurious returns happen.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit) noexcept {
    arrivals_.sleep_unless_changed(seen, limit);  // P3
  }
  void stopped_waiting() noexcept { --waiting_; }
  /// Wakes a waiting thread if a message waits. Inside the monitor. A thread that was woken and takes nothing must call
  /// it: it may have been woken instead of another one.
  void wake_another() noexcept {
    if (waiting_ != 0 && !queue_.empty()) arrivals_.raise(1);  // P1
  }
  /// Ends all wait()s. Any thread.
  void wake_all() noexcept { arrivals_.raise(); }

  // ---- Protocol ----
  [[nodiscard]] Errc open_done(netrpc::Session& lower, const netrpc::ParticipantSet& participants) noexcept override;
  void demux(netrpc::Session& lower, netrpc::Message message) noexcept override;
  [[nodiscard]] Errc control(netrpc::control::Request& request) noexcept override;

 private:
  struct Open {
    netrpc::SessionRef session;
    bool passive = false;
    std::list<SessionNumber>::iterator place{};  ///< In passive_, if it is passive.
  };
  UserObject(const netrpc::InstanceParts& parts, UserOptions options);
  /// May throw std::bad_alloc; then nothing has changed.
  SessionNumber keep(netrpc::SessionRef session, bool passive);
  void arrived(netrpc::Session& lower, netrpc::Message message);

  const UserOptions options_;
  netrpc::Protocol& below_;
  bool attached_ = false;
  bool wanted_ = false;
  SessionNumber last_ = 0;
  std::unordered_map<SessionNumber, Open> sessions_;
  std::unordered_map<const netrpc::Session*, SessionNumber> numbers_;
  std::list<SessionNumber> passive_;  ///< Those that peers have made, the longest unused one first.
  netrpc::FifoQueue<Upcall> queue_;
  std::size_t queued_bytes_ = 0;
  unsigned waiting_ = 0;
  shim::SleepingWord arrivals_;
};

/// USER(name, number, largest, sessions, queue, queue_bytes) over a datagram service.
[[nodiscard]] netrpc::ProtocolKind user_kind();

}  // namespace lrpc::netuser
