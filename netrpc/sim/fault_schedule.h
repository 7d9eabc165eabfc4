// Faults that come by themselves: crashes, pauses, partitions and clocks that change their pace, at moments drawn from
// the world's seed. What the wires do to single packets is in SimLink.
#pragma once

#include <cstdint>

#include "netrpc/sim/world.h"

namespace lrpc::netrpc {

/// The average time between two faults in the whole world (zero: none), and the longest that one lasts. How long each
/// lasts is evenly distributed from a hundredth of that to all of it.
struct FaultOptions {
  Duration crash_every{};  ///< A host that is up crashes, and boots again some time later.
  Duration longest_down = std::chrono::milliseconds(200);
  Duration pause_every{};  ///< A host stands still for a while.
  Duration longest_pause = std::chrono::milliseconds(50);
  Duration partition_every{};  ///< The hosts are split into two or three groups, until that heals.
  Duration longest_partition = std::chrono::milliseconds(300);
  Duration drift_every{};            ///< A host's clock changes its pace.
  std::int32_t largest_drift = 500;  ///< Parts per million, either way.
};

/// Must not outlive the world. Does nothing until start().
class FaultSchedule {
 public:
  FaultSchedule(SimWorld& world, const FaultOptions& options) : world_(world), options_(options) {}
  void start();
  /// No new faults; the present ones end: partitions heal, hosts boot. (A pause runs out.)
  void stop();
  [[nodiscard]] std::uint64_t crashes() const noexcept { return crashes_; }
  [[nodiscard]] std::uint64_t partitions() const noexcept { return partitions_; }
  [[nodiscard]] std::uint64_t pauses() const noexcept { return pauses_; }

 private:
  void next(Event& event, Duration every);
  [[nodiscard]] Duration length(Duration longest);
  [[nodiscard]] SimHost& any_host() { return world_.host(world_.random() % world_.hosts()); }
  void crash();
  void boot();
  void pause();
  void part();
  void heal();
  void drift();

  SimWorld& world_;
  const FaultOptions options_;
  bool started_ = false;
  std::uint64_t crashes_ = 0;
  std::uint64_t partitions_ = 0;
  std::uint64_t pauses_ = 0;
  std::vector<Time> boots_;  ///< By host: when it is to boot again.
  Event crash_{[this] { crash(); }};
  Event boot_{[this] { boot(); }};
  Event pause_{[this] { pause(); }};
  Event part_{[this] { part(); }};
  Event heal_{[this] { heal(); }};
  Event drift_{[this] { drift(); }};
};

}  // namespace lrpc::netrpc
