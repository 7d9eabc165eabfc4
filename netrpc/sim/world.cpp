#include "netrpc/sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <span>

#include "netrpc/sim/devices.h"

namespace lrpc::netrpc {

SimHost& SimWorld::add_host(SimHostOptions options) {
  const auto index = static_cast<std::uint32_t>(hosts_.size());
  if (options.name.empty()) options.name = fmt::format("h{}", index + 1);
  if (!options.address.known()) options.address = {0x0a000001 + index};
  (void)link(options.segment);  // from now on it exists
  hosts_.push_back(std::make_unique<SimHost>(*this, index, std::move(options)));
  SimHost& host = *hosts_.back();
  by_address_.bind(host.address().value, &host);
  host.boot();
  return host;
}

SimHost* SimWorld::find(HostAddress address) noexcept {
  SimHost** const found = by_address_.resolve(address.value);
  return found == nullptr ? nullptr : *found;
}

SimHost* SimWorld::find(const EthernetAddress& address) noexcept {
  SimHost* const host = find(HostAddress{static_cast<std::uint32_t>(address.number())});
  return host != nullptr && host->ethernet_address() == address ? host : nullptr;
}

SimHost* SimWorld::find(const Host& host) noexcept {
  SimHost* const found = find(host.address());
  return found != nullptr && found->up() && &found->host() == &host ? found : nullptr;
}

// ---- time ----

bool SimWorld::step(Time until) {
  const std::optional<Time> event = events_.next_due();
  const bool packet = !queue_.empty() && (!event || queue_.next_due() <= *event);
  const Time next = packet ? queue_.next_due() : event.value_or(Time::max());
  if ((!packet && !event) || next > until) {
    if (until != Time::max()) now_ = std::max(now_, until);
    return false;
  }
  now_ = std::max(now_, next);
  if (packet) {
    deliver(queue_.take());
  } else {
    events_.run_due();
  }
  return true;
}

void SimWorld::run_for(Duration how_long) {
  const Time until = now_ + how_long;
  while (step(until)) {
  }
}

bool SimWorld::run_until(const std::function<bool()>& done, Duration limit) {
  const Time until = now_ + limit;
  while (!done())
    if (!step(until)) return done();
  return true;
}

void SimWorld::run_until_idle(Duration limit) {
  const Time until = now_ + limit;
  while ((!queue_.empty() || events_.next_due()) && step(until)) {
  }
}

bool SimWorld::wait(Host& host, const std::function<bool()>& done, Time deadline) {
  SimHost* const machine = find(host);
  assert(machine != nullptr && host.monitor().held());
  const Time until = deadline == Time::max() ? deadline : machine->world_time_of(deadline);
  ++machine->life_->waiting;
  bool is_done = done();
  while (!is_done) {
    host.monitor().unlock();
    const bool more = step(until);
    host.monitor().lock();
    is_done = done();
    if (!more) break;
  }
  --machine->life_->waiting;
  return is_done;
}

// ---- wires ----

void SimWorld::set_links(const SimLink& link) {
  options_.link = options_.routers = link;
  std::fill(links_.begin(), links_.end(), link);
}

/// One hop of a packet. False: it is lost here.
bool SimWorld::crosses(const SimLink& link, std::size_t fragments, Duration& delay, Packet& packet) {
  for (std::size_t i = 0; i < fragments; ++i)
    if (chance(link.loss)) return false;
  delay += link.latency;
  if (link.jitter.count() > 0) delay += Duration(random() % static_cast<std::uint64_t>(link.jitter.count() + 1));
  if (chance(link.reorder)) {
    ++counters_.reordered;
    delay += Duration(random() % static_cast<std::uint64_t>(link.reorder_delay.count() + 1));
  }
  if (packet.size > 0 && chance(link.corrupt)) {
    ++counters_.corrupted;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      packet.bytes()[random() % packet.size] ^= std::byte{1} << (random() % 8);
  }
  return true;
}

void SimWorld::send(Packet& packet, SimHost& from, SimHost& to, Medium medium, std::size_t fragments) {
  packet.from = from.index();
  packet.to = to.index();
  packet.medium = static_cast<std::uint8_t>(medium);
  packet.number = ++packet_number_;
  count(counters_.sent, "sends", packet);
  if (from.group_ != to.group_) {
    count(counters_.cut, "cut off, loses", packet);
    return queue_.free(packet);
  }
  const bool one_segment = from.segment() == to.segment();
  const auto travel = [&](Packet& traveller, bool& twice) {
    Duration delay = medium == Medium::ethernet ? Duration(0) : options_.ip_latency;
    const SimLink* const hops[] = {&links_[from.segment()], &options_.routers, &links_[to.segment()]};
    for (const SimLink* const hop : std::span(hops).first(one_segment ? 1 : 3)) {
      twice = twice || chance(hop->duplicate);
      if (crosses(*hop, fragments, delay, traveller)) continue;
      count(counters_.lost, "loses", traveller);
      return queue_.free(traveller);
    }
    queue_.put(traveller, now_ + delay);
  };
  // The copy is made before the wire does anything to the original.
  Packet* copy = nullptr;
  if (std::max({links_[from.segment()].duplicate, links_[to.segment()].duplicate, options_.routers.duplicate}) > 0) {
    copy = &queue_.make(packet.size);
    std::copy_n(packet.bytes(), packet.size, copy->bytes());
    copy->from = packet.from;
    copy->to = packet.to;
    copy->medium = packet.medium;
  }
  bool twice = false;
  travel(packet, twice);
  if (copy == nullptr) return;
  if (!twice) return queue_.free(*copy);
  copy->number = ++packet_number_;
  count(counters_.duplicated, "doubles", *copy);
  travel(*copy, twice);
}

void SimWorld::deliver(Packet& packet) {
  SimHost& to = *hosts_[packet.to];
  if (to.paused_until_ > now_)  // it waits in the device, behind earlier packets
    return queue_.put(packet, to.paused_until_);
  SimDevice* const device = to.up() ? to.life_->devices[packet.medium] : nullptr;
  if (hosts_[packet.from]->group_ != to.group_) {
    count(counters_.cut, "cut off, does not get", packet);
  } else if (device == nullptr) {
    count(counters_.host_down, "is down, does not get", packet);
  } else {
    count(counters_.delivered, "gets", packet);
    const Shepherd inside(to.monitor());
    device->receive(packet.bytes(), packet.size);
  }
  queue_.free(packet);
}

// ---- traces ----

void SimWorld::note(std::string_view text) {
  if (trace_) trace_(fmt::format("{:>12.3f} us  {}", static_cast<double>(now_.count()) / 1e3, text));
}

void SimWorld::count(std::uint64_t& counter, std::string_view what, Packet& packet) {
  ++counter;
  if (!traced()) return;
  // What follows the device's own header: the headers of our protocols.
  static constexpr std::size_t kHeaders[kMediums] = {SimEthernet::kHeader, SimIp::kHeader, SimUdp::kHeader};
  static constexpr std::string_view kNames[kMediums] = {"eth", "ip", "udp"};
  const std::size_t header = kHeaders[packet.medium];
  std::string bytes;
  for (std::size_t i = header; i < packet.size && i < header + 56; ++i)
    bytes += fmt::format("{:02x}", std::to_integer<unsigned>(packet.bytes()[i]));
  const bool arrives = what != "sends" && what != "loses" && what != "doubles" && !what.starts_with("cut off, loses");
  note(fmt::format("{} {} #{} {} -> {} {} {} bytes {}{}", hosts_[arrives ? packet.to : packet.from]->name(), what,
                   packet.number, hosts_[packet.from]->name(), hosts_[packet.to]->name(), kNames[packet.medium],
                   packet.size, bytes, packet.size > header + 56 ? ".." : ""));
}

}  // namespace lrpc::netrpc
