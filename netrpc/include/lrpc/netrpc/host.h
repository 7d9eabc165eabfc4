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

/// A host in a Map whose entries peers may choose. `seed`: Host::hash_seed(). `port`: for who tells the ports of one
/// host apart.
struct HostKey {
  std::uint64_t seed = 0;
  HostAddress host;
  std::uint16_t port = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, std::uint64_t{port} << 32 | host.value); }
  friend bool operator==(const HostKey&, const HostKey&) = default;
};

/// What is known about other hosts, for everybody in the graph: their lives, so that a reboot is noticed, and the
/// packets that they receive. Under the monitor.
class Peers {
 public:
  /// A watcher of reboots. Called under the monitor; must not add or remove watchers.
  using Rebooted = std::function<void(HostAddress host, BootId before, BootId now)>;

  /// Hosts that are remembered. Who forges more of them is not listened to; those that are known stay so.
  static constexpr std::size_t kMost = 65536;

  /// `hash_seed`: Host::hash_seed().
  explicit Peers(std::uint64_t hash_seed) noexcept : hash_seed_(hash_seed) {}

  /// The boot identifier that `host` was last heard with; 0 if never.
  [[nodiscard]] BootId boot_id(HostAddress host) noexcept;
  /// `host` has been heard with `boot_id`: if it was known with another, all watchers are told.
  void heard(HostAddress host, BootId boot_id);
  /// Forgets a host (nothing refers to it any more).
  void forget(HostAddress host) noexcept;
  /// The MTU of the link by which `host` receives, as it has said; 0: it has not. What is longer in one packet may be
  /// lost at its door.
  [[nodiscard]] std::size_t mtu(HostAddress host) noexcept;
  /// `host` has said so. A lie costs only who tells it: what is sent to it goes in smaller packets, of kLeastMtu at
  /// least, or no larger than they would be anyway.
  void set_mtu(HostAddress host, std::size_t mtu) noexcept;
  /// Another number whenever any of the following has happened: for who only wants to know whether to ask more.
  [[nodiscard]] std::uint32_t path_changes() const noexcept { return path_changes_; }
  /// Another number whenever `host` is reached another way, its MTU has changed, or that of all hosts may have. Not
  /// known: the same for any host.
  [[nodiscard]] std::uint32_t path_changes(HostAddress host) noexcept;
  /// `host` is reached another way.
  void path_changed(HostAddress host) noexcept;
  /// All hosts may be: the own link carries more or less than before, for example.
  void path_changed() noexcept;
  /// What every host receives in one datagram (RFC 791).
  static constexpr std::size_t kLeastMtu = 576;
  /// For as long as the graph lives.
  void watch(Rebooted rebooted) { watchers_.push_back(std::move(rebooted)); }
  [[nodiscard]] std::size_t size() const noexcept { return boots_.size(); }

 private:
  const std::uint64_t hash_seed_;
  Map<HostKey, BootId> boots_;
  Map<HostKey, std::size_t> mtus_;
  std::uint32_t path_changes_ = 0;
  std::uint32_t of_all_ = 0;            ///< What it was when the paths of all hosts had changed,
  Map<HostKey, std::uint32_t> of_one_;  ///< and, since then, when those of one had.
  std::vector<Rebooted> watchers_;
};

/// Notices that the paths to one host have changed. Whoever has opened a session below, or asked how much goes uncut
/// there, does so again then. A peer that brings it about often costs each message to it some look-ups.
class PathChanges {
 public:
  /// Whether they have since this was asked last. One comparison, as long as no path has changed at all.
  [[nodiscard]] bool noticed(Peers& peers, HostAddress host) noexcept {
    return seen_ != peers.path_changes() && noticed_of(peers, host);
  }
  /// What has happened until now is known already.
  void look(Peers& peers, HostAddress host) noexcept {
    seen_ = peers.path_changes();
    of_host_ = peers.path_changes(host);
  }
  /// Nobody has looked yet: they count as changed once.
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
  /// Blocks the calling thread, which is inside `host`'s monitor, until `done()` (evaluated inside the monitor) or
  /// until
  /// `deadline`; the monitor is let go meanwhile. While it waits the thread may be used to shepherd messages that
  /// arrive. Returns done().
  virtual bool wait(Host& host, const std::function<bool()>& done, Time deadline) = 0;
  /// Called inside the monitor by who has changed what a `done` waits for. Without it a thread that waits while another
  /// receives finds out at its deadline.
  virtual void wake(Host& host) noexcept = 0;
  /// Runs `procedure`, which is a user's, outside the monitor in the calling thread, which is inside. Others receive
  /// meanwhile if it lasts. The graph may have changed when this returns.
  virtual void outside(Host& host, const std::function<void()>& procedure);
};

struct HostOptions {
  std::string name = "host";                         ///< For traces.
  HostAddress address;                               ///< The host's own, as it is written into headers.
  BootId boot_id = 0;                                ///< Zero: one is drawn.
  std::uint64_t seed = 0;                            ///< Of random(); zero: from the kernel.
  std::size_t buffer_limit = std::size_t{64} << 20;  ///< Bytes of all messages together.
  /// Whether there is so little memory that no new peer, session or channel is to be begun. Asked inside the monitor.
  std::function<bool()> short_of_memory = [] { return false; };
  /// Told, in a line for the log, what whoever runs the host should know. Inside the monitor: it must not block. May
  /// throw std::bad_alloc; then nobody is told. Null: nobody is.
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
  /// Tells whoever runs the host what `text()` returns (HostOptions::notice). At most kNotices at once, and one more
  /// each kNoticePause; the next one then says how many were left out.
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
  /// Random numbers, reproducible from HostOptions::seed. Not for keys. Under the monitor.
  [[nodiscard]] std::uint64_t random() noexcept;
  /// Secret to this host: seeds the hashes of maps whose keys peers choose.
  [[nodiscard]] std::uint64_t hash_seed() const noexcept { return hash_seed_; }
  /// What only packets bring about is dropped then: who means it sends it again.
  [[nodiscard]] bool short_of_memory() const { return options_.short_of_memory(); }

 private:
  [[nodiscard]] bool may_notice() noexcept;
  void tell(std::string text);

  HostOptions options_;
  Engine& engine_;
  Monitor monitor_;
  BufferPool pool_;
  EventManager events_;
  std::uint64_t state_;
  std::uint64_t hash_seed_;
  Peers peers_;
  Groups groups_;
  std::uint64_t notices_ = kNotices;  ///< That may still be told.
  std::uint64_t left_out_ = 0;        ///< Notices, since the last one that was told.
  Time refilled_{};
};

}  // namespace lrpc::netrpc
