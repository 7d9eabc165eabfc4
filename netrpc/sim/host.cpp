#include <algorithm>
#include <cassert>

#include "netrpc/sim/devices.h"
#include "netrpc/sim/world.h"

namespace lrpc::netrpc {

namespace {
constexpr std::int64_t kMillion = 1'000'000;
}

SimHost::SimHost(SimWorld& world, std::uint32_t index, SimHostOptions options)
    : world_(world),
      index_(index),
      options_(std::move(options)),
      rate_since_(world.now()),
      rate_since_here_(options_.clock_offset),
      timer_([this] { run_due(); }) {}

EthernetAddress SimHost::ethernet_address() const noexcept {
  const std::uint32_t ip = options_.address.value;  // locally administered
  const auto byte = [ip](int shift) { return static_cast<std::uint8_t>(ip >> shift); };
  return {{0x02, card_, byte(24), byte(16), byte(8), byte(0)}};
}

void SimHost::on_boot(std::function<void(SimHost&)> compose) {
  compose_ = std::move(compose);
  if (!up() || !compose_) return;
  const Shepherd inside(monitor());
  compose_(*this);
}

void SimHost::boot() {
  if (up()) return;
  if (world_.traced()) world_.note(options_.name + " boots");
  HostOptions options{.name = options_.name,
                      .address = options_.address,
                      .buffer_limit = options_.buffer_limit,
                      .notice = [this](std::string text) { notices_.push_back(std::move(text)); }};
  while (options.seed == 0) options.seed = world_.random();
  ++lives_;
  life_ = std::make_unique<Life>(std::move(options), *this, world_);
  life_->host.events().on_earlier([this] { wake_at_next_due(); });
  if (!compose_) return;
  const Shepherd inside(monitor());
  compose_(*this);
}

void SimHost::crash() {
  if (!up()) return;
  assert(life_->waiting == 0 && "a thread waits in the host");
  if (world_.traced()) world_.note(options_.name + " crashes");
  {
    const Shepherd inside(monitor());
    while (!life_->owned.empty()) life_->owned.pop_back();
  }
  world_.events_.cancel(timer_);
  life_.reset();
}

void SimHost::pause(Duration how_long) {
  if (world_.traced()) world_.note(options_.name + " pauses for " + std::to_string(how_long.count()) + " ns");
  paused_until_ = std::max(paused_until_, world_.now() + how_long);
  if (up()) wake_at_next_due();
}

void SimHost::set_drift(std::int32_t parts_per_million) {
  rate_since_here_ = now();
  rate_since_ = world_.now();
  options_.drift = parts_per_million;
  if (up()) wake_at_next_due();
}

template <class Kind>
Protocol& SimHost::device(Medium medium) {
  SimDevice* const& last = life_->devices[static_cast<std::size_t>(medium)];
  if (last == nullptr) own(std::make_shared<Kind>(*this));  // it registers itself
  return *last;
}
Protocol& SimHost::ethernet() { return device<SimEthernet>(Medium::ethernet); }
Protocol& SimHost::ip() { return device<SimIp>(Medium::ip); }

Time SimHost::now() const noexcept { return time_at(world_.now()); }

Time SimHost::time_at(Time world) const noexcept {
  const std::int64_t passed = (world - rate_since_).count();
  // In two parts, so that hours times a rate do not overflow.
  const std::int64_t gained = passed / kMillion * options_.drift + passed % kMillion * options_.drift / kMillion;
  return rate_since_here_ + Duration(passed + gained);
}

Time SimHost::world_time_of(Time time) const noexcept {
  const std::int64_t here = (time - rate_since_here_).count();
  if (here <= 0) return rate_since_;
  if (here > Time::max().count() / 4) return Time::max();  // centuries: never
  const std::int64_t rate = kMillion + options_.drift;
  Time world = rate_since_ + Duration(here / rate * kMillion + here % rate * kMillion / rate);
  while (time_at(world) < time) ++world;  // what the divisions have cut off
  return world;
}

void SimHost::wake_at_next_due() {
  const std::optional<Time> due = life_->host.events().next_due();
  if (!due) return;
  const Time world = std::max(world_time_of(*due), paused_until_);
  if (world == Time::max()) return;
  world_.events_.schedule(timer_, std::max(world - world_.now(), Duration(0)));
}

void SimHost::run_due() {
  if (!up()) return;
  if (paused_until_ <= world_.now()) {
    const Shepherd inside(monitor());
    world_.counters_.events += life_->host.events().run_due();
  }
  wake_at_next_due();
}

}  // namespace lrpc::netrpc
