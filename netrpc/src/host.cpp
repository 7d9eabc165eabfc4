#include "lrpc/netrpc/host.h"

#include <algorithm>
#include <utility>

#include "lrpc/detail/shim/system/identifier.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

BootId Peers::boot_id(HostAddress host) noexcept {
  const BootId* const known = boots_.resolve({hash_seed_, host});
  return known == nullptr ? 0 : *known;
}

void Peers::heard(HostAddress host, BootId boot_id) {
  BootId* const known = boots_.resolve({hash_seed_, host});
  if (known == nullptr && boots_.size() < kMost)
    attempt([&] { boots_.bind({hash_seed_, host}, boot_id); });  // without memory: as if not heard
  if (known == nullptr || *known == boot_id) return;
  const BootId before = std::exchange(*known, boot_id);
  for (const Rebooted& watcher : watchers_) watcher(host, before, boot_id);
}

void Peers::forget(HostAddress host) noexcept {
  boots_.unbind({hash_seed_, host});
  if (mtus_.unbind({hash_seed_, host})) path_changed(host);
}

std::size_t Peers::mtu(HostAddress host) noexcept {
  if (mtus_.empty()) return 0;
  const std::size_t* const known = mtus_.resolve({hash_seed_, host});
  return known == nullptr ? 0 : *known;
}

void Peers::set_mtu(HostAddress host, std::size_t mtu) noexcept {
  mtu = std::max(mtu, kLeastMtu);
  if (std::size_t* const known = mtus_.resolve({hash_seed_, host})) {
    if (std::exchange(*known, mtu) != mtu) path_changed(host);
    return;
  }
  if (mtus_.size() >= kMost) return;
  if (attempt([&] { mtus_.bind({hash_seed_, host}, mtu); })) path_changed(host);
}

std::uint32_t Peers::path_changes(HostAddress host) noexcept {
  if (!host.known()) return path_changes_;
  const std::uint32_t* const own = of_one_.resolve({hash_seed_, host});
  return own == nullptr ? of_all_ : *own;
}

/// If a change cannot be recorded for one host, it is recorded for all.
void Peers::path_changed(HostAddress host) noexcept {
  if (!host.known() || of_one_.size() >= kMost) return path_changed();
  ++path_changes_;
  if (std::uint32_t* const own = of_one_.resolve({hash_seed_, host})) {
    *own = path_changes_;
    return;
  }
  if (!attempt([&] { of_one_.bind({hash_seed_, host}, path_changes_); })) path_changed();
}

void Peers::path_changed() noexcept {
  of_all_ = ++path_changes_;
  of_one_.clear();
}

bool PathChanges::noticed_of(Peers& peers, HostAddress host) noexcept {
  const std::uint32_t before = of_host_;
  look(peers, host);
  return of_host_ != before;
}

void Engine::outside(Host& host, const std::function<void()>& procedure) {
  host.monitor().unlock();
  procedure();
  host.monitor().lock();
}

Host::Host(HostOptions options, const Clock& clock, Engine& engine)
    : options_(std::move(options)),
      engine_(engine),
      pool_(options_.buffer_limit),
      events_(clock),
      state_(options_.seed),
      // Not one of random()'s numbers: those are seen on the wire.
      hash_seed_(options_.seed != 0 ? mix(options_.seed, 1) : shim::make_identifier()),
      peers_(hash_seed_) {
  while (options_.boot_id == 0) options_.boot_id = static_cast<BootId>(random());
}

bool Host::may_notice() noexcept {
  if (!options_.notice) return false;
  const auto pauses = static_cast<std::uint64_t>((now() - refilled_) / kNoticePause);
  if (pauses != 0) refilled_ = now();
  notices_ = std::min(kNotices, notices_ + std::min(pauses, kNotices));
  if (notices_ == 0) {
    ++left_out_;
    return false;
  }
  --notices_;
  return true;
}

void Host::tell(std::string text) {
  if (left_out_ != 0) text += " (before that, " + std::to_string(left_out_) + " reports were left out)";
  left_out_ = 0;
  options_.notice(std::move(text));
}

/// These numbers are visible on the wire, and one number of next_random() reveals all that follow: so without a seed
/// each comes from the kernel.
std::uint64_t Host::random() noexcept { return options_.seed != 0 ? next_random(state_) : shim::make_identifier(); }

}  // namespace lrpc::netrpc
