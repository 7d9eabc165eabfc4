// A host: what all protocol objects of one graph share (the x-kernel around them).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/buffer_pool.h"
#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/event_manager.h"
#include "lrpc/netrpc/groups.h"
#include "lrpc/netrpc/map.h"
#include "lrpc/netrpc/monitor.h"

namespace lrpc::netrpc {

class Host;

/// Names one life of a host's graph: random, new at each start; 0 stands for "not known".
using BootId = std::uint32_t;

/// The key of a host in a Map whose keys peers can choose. `seed`: Host::hash_seed(). `port`: for protocols that tell
/// the ports of a host apart.
struct HostKey {
  std::uint64_t seed = 0;
  HostAddress host;
  std::uint16_t port = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, std::uint64_t{port} << 32 | host.value); }
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// What the protocols of a graph know about other hosts: boot identifiers, which show a reboot, and the MTUs of their
/// links. Under the monitor.
class Peers {
 public:
  /// A watcher of reboots. Called under the monitor; must not add or remove watchers.
  using Rebooted = std::function<void(HostAddress host, BootId before, BootId now)>;

  /// The most hosts that are remembered. Beyond it new hosts are not remembered; known hosts stay known.
  static constexpr std::size_t kMost = 65536;

  /// `hash_seed`: Host::hash_seed().
  explicit Peers(std::uint64_t hash_seed) noexcept : hash_seed_(hash_seed) {}

  /// The boot identifier that `host` was last heard with; 0 if never.
  [[nodiscard]] BootId boot_id(HostAddress host) noexcept;
  /// Records that `host` was heard with `boot_id`. If it was known with another one, calls all watchers.
  void heard(HostAddress host, BootId boot_id);
  /// Forgets a host, when nothing refers to it any more.
  void forget(HostAddress host) noexcept;
  /// The MTU of the link by which `host` receives, as `host` advertises it; 0: unknown. Longer packets may be lost
  /// there.
  [[nodiscard]] std::size_t mtu(HostAddress host) noexcept;
  /// Records the MTU that `host` advertises. A false one harms only `host` itself: it gets smaller packets (of at least
  /// kLeastMtu), never larger ones than without the advertisement.
  void set_mtu(HostAddress host, std::size_t mtu) noexcept;
  /// Changes with every path_changed(). Compare it first: as long as it is the same, no path has changed.
  [[nodiscard]] std::uint32_t path_changes() const noexcept { return path_changes_; }
  /// Changes when the path to `host` or its MTU has changed, or when all paths may have changed. All unknown hosts have
  /// the same number.
  [[nodiscard]] std::uint32_t path_changes(HostAddress host) noexcept;
  /// Records that `host` is reached another way.
  void path_changed(HostAddress host) noexcept;
  /// Records that all hosts may be reached another way, for example because this host's link has another MTU.
  void path_changed() noexcept;
  /// The size of a datagram that every host can receive (RFC 791).
  static constexpr std::size_t kLeastMtu = 576;
  /// Adds a watcher, for as long as the graph lives.
  void watch(Rebooted rebooted) { watchers_.push_back(std::move(rebooted)); }
  [[nodiscard]] std::size_t size() const noexcept { return boots_.size(); }

 private:
  const std::uint64_t hash_seed_;
  Map<HostKey, BootId> boots_;
  Map<HostKey, std::size_t> mtus_;
  std::uint32_t path_changes_ = 0;
  std::uint32_t of_all_ = 0;            ///< path_changes_ when all paths last changed,
  Map<HostKey, std::uint32_t> of_one_;  ///< and when a host's path changed since then.
  std::vector<Rebooted> watchers_;
};

/// Notices that the paths to one host have changed. After a change a protocol opens its session below, or asks for its
/// sizes, again. If a peer causes changes often, each message to it costs some look-ups.
class PathChanges {
 public:
  /// Whether the paths have changed since the last call. One comparison, as long as no path to any host has changed.
  [[nodiscard]] bool noticed(Peers& peers, HostAddress host) noexcept {
    return seen_ != peers.path_changes() && noticed_of(peers, host);
  }
  /// Ignores all changes until now.
  void look(Peers& peers, HostAddress host) noexcept {
    seen_ = peers.path_changes();
    of_host_ = peers.path_changes(host);
  }
  /// Makes the next noticed() return true.
  void doubt(Peers& peers, HostAddress host) noexcept {
    look(peers, host);
    seen_ = ~seen_;
    of_host_ = ~of_host_;
  }

 private:
  [[nodiscard]] bool noticed_of(Peers& peers, HostAddress host) noexcept;
  std::uint32_t seen_ = 0;
  std::uint32_t of_host_ = 0;
};

/// Drives a graph: makes messages arrive and events run. The real one waits on io_uring, the simulated one runs the
/// simulation.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Blocks the calling thread, which is inside `host`'s monitor, until `done()` (evaluated inside the monitor) returns
  /// true or until `deadline`. It releases the monitor meanwhile. The waiting thread may shepherd messages that arrive.
  /// Returns done().
  virtual bool wait(Host& host, const std::function<bool()>& done, Time deadline) = 0;
  /// Call it inside the monitor after a change that may make a waiting thread's `done()` true. Otherwise a thread that
  /// waits while another one receives notices the change only at its deadline.
  virtual void wake(Host& host) noexcept = 0;
  /// Runs a user's `procedure` in the calling thread, which is inside the monitor and leaves it meanwhile. If the
  /// procedure takes long, other threads receive. The graph may have changed when this returns.
  virtual void outside(Host& host, const std::function<void()>& procedure);
};

struct HostOptions {
  std::string name = "host";                         ///< For traces.
  HostAddress address;                               ///< The host's own, written into headers.
  BootId boot_id = 0;                                ///< Zero: one is drawn.
  std::uint64_t seed = 0;                            ///< Of random(), for tests; zero: the kernel supplies its numbers.
  std::size_t buffer_limit = std::size_t{64} << 20;  ///< Bytes of all messages together.
  /// Returns true while memory is short: then the host creates no new peer, session or channel. Called inside the
  /// monitor.
  std::function<bool()> short_of_memory = [] { return false; };
  /// Gets lines for the log that the administrator should read. Called inside the monitor; must not block. If it throws
  /// std::bad_alloc, the line is lost. Null: no log.
  std::function<void(std::string)> notice{};
};

/// Pinned in memory; outlives its protocols.
class Host {
 public:
  Host(HostOptions options, const Clock& clock, Engine& engine);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] HostAddress address() const noexcept { return options_.address; }
  /// For a device that learns the host's address only when it starts; before any session is open.
  void set_address(HostAddress address) noexcept { options_.address = address; }
  [[nodiscard]] BootId boot_id() const noexcept { return options_.boot_id; }
  [[nodiscard]] Monitor& monitor() noexcept { return monitor_; }
  [[nodiscard]] EventManager& events() noexcept { return events_; }
  [[nodiscard]] BufferPool& pool() noexcept { return pool_; }
  [[nodiscard]] Peers& peers() noexcept { return peers_; }
  [[nodiscard]] Groups& groups() noexcept { return groups_; }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] Time now() const noexcept { return events_.now(); }
  /// Passes text() to HostOptions::notice. At most kNotices at once, then one each kNoticePause; the next one says how
  /// many were left out.
  template <class Text>
  void notice(Text text) noexcept {
    if (!may_notice()) return;
    try {
      tell(text());
    } catch (const std::bad_alloc&) {
    }
  }
  static constexpr std::uint64_t kNotices = 20;
  static constexpr Duration kNoticePause = std::chrono::seconds(10);
  /// A random number. Without HostOptions::seed it costs a system call and cannot be guessed from other ones; with a
  /// seed the numbers are reproducible. Not for keys. Under the monitor.
  [[nodiscard]] std::uint64_t random() noexcept;
  /// Secret to this host: seeds the hashes of maps whose keys peers choose.
  [[nodiscard]] std::uint64_t hash_seed() const noexcept { return hash_seed_; }
  /// While true, packets that ask for new state are dropped; their senders retransmit them.
  [[nodiscard]] bool short_of_memory() const { return options_.short_of_memory(); }

 private:
  [[nodiscard]] bool may_notice() noexcept;
  void tell(std::string text);

  HostOptions options_;
  Engine& engine_;
  Monitor monitor_;
  BufferPool pool_;
  EventManager events_;
  std::uint64_t state_;  ///< Of the generator, if there is a seed.
  std::uint64_t hash_seed_;
  Peers peers_;
  Groups groups_;
  std::uint64_t notices_ = kNotices;  ///< How many more may be logged now.
  std::uint64_t left_out_ = 0;        ///< Notices dropped since the last logged one.
  Time refilled_{};
};

}  // namespace lrpc::netrpc
