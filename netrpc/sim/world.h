// The simulation: any number of hosts, the wires between them and time itself, in one thread of one process. Everything
// that happens follows from one seed, so that what went wrong once can be made to go wrong again. The protocols are
// those that run on real wires; only the devices (SIM_ETH, SIM_IP, SIM_UDP) and the clock are the simulation's.
//
//     SimWorld world({.seed = 7});
//     SimHost& a = world.add_host();               // 10.0.0.1, segment 0
//     SimHost& b = world.add_host();               // 10.0.0.2
//     auto& channel = a.add<Channel>(a.ethernet()); // ...
//     world.run_for(10ms);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/sim/packet_queue.h"

namespace lrpc::netrpc {

class SimDevice;
class SimHost;
class SimWorld;

/// What a wire does to each packet that crosses it. Rates are from 0 to 1. Each hop of a path counts by itself.
struct SimLink {
  Duration latency = std::chrono::microseconds(10);
  Duration jitter{};  ///< Each packet takes up to this much longer, evenly distributed (and may so overtake others).
  double loss = 0;
  double duplicate = 0;  ///< It arrives twice, each copy with a delay of its own.
  double reorder = 0;    ///< It takes up to `reorder_delay` longer.
  Duration reorder_delay = std::chrono::milliseconds(1);
  double corrupt = 0;  ///< One to three of its bits are flipped, and the frame's check does not notice.
};

struct SimOptions {
  std::uint64_t seed = 1;
  SimLink link;                                        ///< Of every segment, until set_link().
  SimLink routers;                                     ///< Between segments.
  Duration ip_latency = std::chrono::microseconds(1);  ///< What IP takes beyond the wires.
};

struct SimHostOptions {
  std::string name;           ///< Empty: "h1", "h2", ... in the order of making.
  HostAddress address;        ///< Not known: 10.0.0.1, 10.0.0.2, ... in the order of making.
  std::uint32_t segment = 0;  ///< The Ethernet it is on. A segment exists once it is named.
  Duration clock_offset{};    ///< Its clock's start is this far from the world's.
  std::int32_t drift = 0;     ///< Parts per million by which its clock runs faster.
  std::size_t buffer_limit = std::size_t{64} << 20;
};

/// The kinds of devices of a host. UDP's packets take the same way as IP's.
enum class Medium : std::uint8_t { ethernet, ip, udp };
inline constexpr std::size_t kMediums = 3;

/// A simulated machine, and its clock. Between boot and crash it has a life: a netrpc::Host and what was put on it.
/// Owned by the world.
class SimHost final : public Clock {
 public:
  SimHost(SimWorld& world, std::uint32_t index, SimHostOptions options);
  ~SimHost() override { crash(); }

  // ---- the life it has now; precondition: up() ----
  [[nodiscard]] Host& host() noexcept { return life_->host; }
  [[nodiscard]] Monitor& monitor() noexcept { return life_->host.monitor(); }
  [[nodiscard]] BufferPool& pool() noexcept { return life_->host.pool(); }
  /// The devices, made when first asked for. They belong to the life.
  Protocol& ethernet();
  Protocol& ip();
  /// Makes a `P(host(), arguments...)` that lives as long as this life, longer than what is added later.
  template <class P, class... Arguments>
  P& add(Arguments&&... arguments) {
    auto made = std::make_shared<P>(host(), std::forward<Arguments>(arguments)...);
    P& protocol = *made;
    own(std::move(made));
    return protocol;
  }
  /// Keeps anything as long as this life (a Graph, what a client remembers). Released in the reverse order, inside the
  /// monitor.
  void own(std::shared_ptr<void> thing) { life_->owned.push_back(std::move(thing)); }

  // ---- the machine ----
  [[nodiscard]] bool up() const noexcept { return life_ != nullptr; }
  [[nodiscard]] SimWorld& world() noexcept { return world_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] HostAddress address() const noexcept { return options_.address; }
  [[nodiscard]] EthernetAddress ethernet_address() const noexcept;
  /// Gives the machine another Ethernet address, which ARP knows at once. What is sent to the old one is lost.
  void change_ethernet_address() noexcept { ++card_; }
  [[nodiscard]] std::uint32_t segment() const noexcept { return options_.segment; }
  /// The notices of its lives (HostOptions::notice).
  [[nodiscard]] const std::vector<std::string>& notices() const noexcept { return notices_; }
  /// How often it has booted.
  [[nodiscard]] std::uint32_t lives() const noexcept { return lives_; }

  /// What composes the protocols. Called at once, if the host is up, and at each boot from now on, inside the monitor.
  void on_boot(std::function<void(SimHost&)> compose);
  /// A new life, with a new boot identifier and empty memory; no effect if up().
  void boot();
  /// Destroys everything that the life had at once, without telling anybody. Packets under way to it are lost if they
  /// arrive before the next boot. Not from inside the host itself, nor while a thread waits in it.
  void crash();
  /// It is up and no thread waits in it.
  [[nodiscard]] bool can_crash() const noexcept { return up() && life_->waiting == 0; }
  /// For `how_long` nothing runs on it; what arrives waits.
  void pause(Duration how_long);
  /// What its own clock shows.
  [[nodiscard]] Time now() const noexcept override;
  /// Lets the clock run on at another rate.
  void set_drift(std::int32_t parts_per_million);

 private:
  friend class SimWorld;
  friend class SimDevice;

  struct Life {
    Life(HostOptions options, const Clock& clock, Engine& engine) : host(std::move(options), clock, engine) {}
    Host host;
    SimDevice* devices[kMediums] = {};  ///< The last one made of each.
    std::vector<std::shared_ptr<void>> owned;
    std::uint32_t waiting = 0;  ///< Threads inside Engine::wait(): frames of this life on the stack.
  };

  [[nodiscard]] Time time_at(Time world) const noexcept;
  /// The first moment of the world at which the host's clock shows `time`.
  [[nodiscard]] Time world_time_of(Time time) const noexcept;
  void wake_at_next_due();
  void run_due();
  template <class Kind>
  Protocol& device(Medium medium);

  SimWorld& world_;
  const std::uint32_t index_;
  SimHostOptions options_;
  Time rate_since_{};       ///< World time at which the present drift began,
  Time rate_since_here_{};  ///< and what the host's clock showed then.
  Time paused_until_{};
  std::uint32_t lives_ = 0;
  std::uint8_t card_ = 0;  ///< A byte of its Ethernet address.
  std::vector<std::string> notices_;
  std::uint32_t group_ = 0;  ///< Hosts of different groups do not hear each other.
  std::function<void(SimHost&)> compose_;
  Event timer_;  ///< In the world's events: when the host's next event is due.
  std::unique_ptr<Life> life_;
};

/// What has happened on the wires since the beginning.
struct SimCounters {
  std::uint64_t sent = 0;  ///< Packets that hosts gave to their devices (a broadcast counts once per receiver).
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t cut = 0;        ///< Lost because of a partition.
  std::uint64_t host_down = 0;  ///< Lost because the host was down.
  std::uint64_t events = 0;     ///< Procedures of hosts' events that were called.
};

/// The world. Single-threaded: everything in it is called by one thread.
class SimWorld final : public Engine, public Clock {
 public:
  explicit SimWorld(SimOptions options = {}) : options_(options), state_(options.seed) {}

  /// Adds a host and boots it. It stays where it is in memory.
  SimHost& add_host(SimHostOptions options = {});
  [[nodiscard]] SimHost& host(std::size_t index) noexcept { return *hosts_[index]; }
  [[nodiscard]] std::size_t hosts() const noexcept { return hosts_.size(); }
  /// Null: there is no such machine (whether it is up does not matter).
  [[nodiscard]] SimHost* find(HostAddress address) noexcept;
  [[nodiscard]] SimHost* find(const EthernetAddress& address) noexcept;
  /// The machine that `host` is a life of; null if it is none of this world's.
  [[nodiscard]] SimHost* find(const Host& host) noexcept;

  // ---- time; none of these from inside a monitor ----
  [[nodiscard]] Time now() const noexcept override { return now_; }
  void run_for(Duration how_long);
  /// Runs until `done()`, asked after each thing that happens. Returns false if `limit` passes first, or nothing is
  /// left that could happen.
  bool run_until(const std::function<bool()>& done, Duration limit = std::chrono::hours(1));
  /// Runs until no packet is under way and no host's event waits, or `limit` has passed.
  void run_until_idle(Duration limit = std::chrono::hours(1));
  /// Runs the next event, or delivers the next packet, if it is due by `until`. If none is, lets time pass until then,
  /// and returns false.
  bool step(Time until);
  /// Runs the event's procedure once, `delay` from now, outside every monitor. The event is the caller's and must not
  /// outlive the world.
  void schedule(Event& event, Duration delay) { events_.schedule(event, delay); }
  void cancel(Event& event) noexcept { events_.cancel(event); }
  [[nodiscard]] std::uint64_t random() noexcept { return next_random(state_); }
  /// True with the probability `rate`.
  [[nodiscard]] bool chance(double rate) noexcept {
    return rate > 0 && static_cast<double>(random() >> 11) * 0x1p-53 < rate;
  }

  // ---- wires ----
  [[nodiscard]] SimLink& link(std::uint32_t segment) {
    while (links_.size() <= segment) links_.push_back(options_.link);
    return links_[segment];
  }
  void set_links(const SimLink& link);  ///< Of all segments and between the routers.
  /// Hosts hear only hosts of the same group from now on; all begin in group 0.
  void set_group(SimHost& host, std::uint32_t group) noexcept { host.group_ = group; }
  void heal() noexcept {
    for (const auto& host : hosts_) host->group_ = 0;
  }
  [[nodiscard]] const SimCounters& counters() const noexcept { return counters_; }
  /// Each thing that happens on the wires and to the hosts, as a line of text. Empty: no trace.
  void trace(std::function<void(std::string_view)> line) { trace_ = std::move(line); }
  [[nodiscard]] bool traced() const noexcept { return static_cast<bool>(trace_); }
  /// Adds a line, with the time in front.
  void note(std::string_view text);

  // ---- Engine ----
  bool wait(Host& host, const std::function<bool()>& done, Time deadline) override;
  void wake(Host& /*host*/) noexcept override {}

 private:
  friend class SimHost;
  friend class SimDevice;

  /// For devices: sends a packet that they have made in `queue_`.
  void send(Packet& packet, SimHost& from, SimHost& to, Medium medium, std::size_t fragments);
  [[nodiscard]] bool crosses(const SimLink& link, std::size_t fragments, Duration& delay, Packet& packet);
  void deliver(Packet& packet);
  /// Counts and notes what has happened to a packet.
  void count(std::uint64_t& counter, std::string_view what, Packet& packet);

  SimOptions options_;
  Time now_{};
  std::uint64_t state_;
  PacketQueue queue_;
  EventManager events_{*this};
  std::vector<SimLink> links_;
  SimCounters counters_;
  std::uint64_t packet_number_ = 0;
  std::function<void(std::string_view)> trace_;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  Map<std::uint32_t, SimHost*> by_address_;
};

}  // namespace lrpc::netrpc
