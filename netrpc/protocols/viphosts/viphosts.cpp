#include "netrpc/protocols/viphosts/viphosts.h"

#include <algorithm>
#include <utility>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/viphosts/header.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc {

namespace viphosts {
namespace {

using namespace std::chrono_literals;

/// The longest lifetime of an advertisement that is believed.
constexpr Duration kLongest = 1h;
/// Changes within this time are advertised together.
constexpr Duration kGather = 1ms;
/// A full table is searched for expired entries at most once in this time, however many new hosts need room.
constexpr Duration kSearch = 1s;

constexpr ParticipantSet kBelow{protocol_numbers::kVipHosts, {}, {}};

class VipHostsProtocol final : public Protocol {
 public:
  VipHostsProtocol(Host& host, std::string name, Protocol& ethernet, const VipHostsOptions& options)
      : Protocol(host, std::move(name)),
        ethernet_(ethernet),
        options_(options),
        say_([this] { broadcast(); }),
        expire_([this] { forget_expired(); }) {}
  ~VipHostsProtocol() override {
    if (everybody_) ethernet_.open_disable(*this, kBelow);
  }

  [[nodiscard]] Status start() {
    ParticipantSet everybody = kBelow;
    everybody.local.host = host().address();
    everybody.remote.ethernet = kEthernetBroadcast;
    auto session = ethernet_.open(*this, everybody);
    if (!session) return session.error();
    if (auto enabled = ethernet_.open_enable(*this, kBelow); !enabled) return enabled;
    everybody_ = std::move(*session);
    host().events().schedule(say_, kGather);
    return {};
  }
  void demux(Session& lower, Message message) noexcept override {
    const std::optional<Advertisement> said = pop_header<Advertisement>(message);
    const EthernetAddress ethernet = lower.participants().remote.ethernet;
    if (!said || said->version != kVersion || !said->host.known() || !ethernet.known())
      return dropped(counted.malformed);
    if (said->host == host().address()) return;  // this host's own frame, or another host's mistake
    ++counted.received;
    believe(lower, *said, ethernet);
  }
  Errc control(control::Request& request) noexcept override {
    if (auto* const asked = std::get_if<control::SpeaksVip>(&request)) {
      Entry* const entry = find(asked->host);
      asked->speaks = entry != nullptr && entry->said.speaks(asked->protocol);
      return Errc::ok;
    }
    if (const auto* const told = std::get_if<control::AdvertiseVip>(&request)) {
      if (told->protocol > 255) return Errc::invalid_argument;
      if (own_.speaks(told->protocol) == told->speaks) return Errc::ok;
      own_.set(told->protocol, told->speaks);
      host().events().schedule(say_, kGather);
      return Errc::ok;
    }
    if (auto* const reverse = std::get_if<control::ResolveReverse>(&request)) {
      const HostAddress* const known = by_ethernet_.resolve(key(reverse->ethernet));
      if (known == nullptr || find(*known) == nullptr) return Errc::host_unreachable;
      reverse->host = *known;
      return Errc::ok;
    }
    if (auto* const resolve = std::get_if<control::Resolve>(&request)) {
      const Entry* const entry = find(resolve->host);
      if (entry == nullptr) return Errc::host_unreachable;
      resolve->ethernet = entry->ethernet;
      return Errc::ok;
    }
    if (told_statistics(request, 0, table_.size())) return Errc::ok;
    if (std::holds_alternative<control::DropIdle>(request)) {
      forget_expired();
      return Errc::ok;
    }
    return Protocol::control(request);
  }

 private:
  struct EthernetKey {
    std::uint64_t seed = 0;
    EthernetAddress ethernet;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(seed, ethernet.number()); }
    friend bool operator==(const EthernetKey& a, const EthernetKey& b) noexcept { return a.ethernet == b.ethernet; }
  };
  struct Entry {
    EthernetAddress ethernet;
    Time expires{};
    Advertisement said;
  };

  [[nodiscard]] HostKey key(HostAddress host) const noexcept { return {this->host().hash_seed(), host}; }
  [[nodiscard]] EthernetKey key(const EthernetAddress& ethernet) const noexcept {
    return {host().hash_seed(), ethernet};
  }
  [[nodiscard]] Entry* find(HostAddress host) noexcept {
    Entry* const entry = table_.resolve(key(host));
    return entry != nullptr && entry->expires > this->host().now() ? entry : nullptr;
  }
  void believe(Session& lower, const Advertisement& said, const EthernetAddress& ethernet) noexcept {
    Entry* entry = find(said.host);
    // An advertisement from another Ethernet address changes or removes a known host only if ARP agrees.
    if (entry != nullptr && entry->ethernet != ethernet && !arp_says(said.host, ethernet))
      return dropped(counted.refused);
    if (said.lifetime_ms == 0) {
      if (entry != nullptr) forget(said.host);
      return;
    }
    const bool fresh = entry == nullptr;
    if (fresh) forget(said.host);  // what has expired
    const auto full = [this] { return table_.size() >= options_.hosts || host().short_of_memory(); };
    if (fresh && full()) {
      if (host().now() >= search_again_) forget_expired();
      if (full()) return dropped(counted.refused);
    }
    const bool came_back = !fresh && entry->said.boot_id != said.boot_id;
    if (!fresh && entry->ethernet != ethernet) release(entry->ethernet, said.host);
    const Duration lifetime = std::min<Duration>(std::chrono::milliseconds(said.lifetime_ms), kLongest);
    const bool reached_otherwise = fresh || entry->ethernet != ethernet || entry->said.protocols != said.protocols;
    table_.bind(key(said.host), Entry{ethernet, host().now() + lifetime, said});
    if (reached_otherwise) host().peers().path_changed(said.host);
    by_ethernet_.bind(key(ethernet), said.host);
    if (!expire_.waiting() || host().now() + lifetime < expire_.due()) host().events().schedule(expire_, lifetime);
    // A new host knows nothing of this one yet. It gets at most one answer for each new entry or life. Answers get
    // none.
    if ((fresh || came_back) && (said.flags & kAnswerMe) != 0) say(lower, 0);
  }
  [[nodiscard]] bool arp_says(HostAddress host, const EthernetAddress& ethernet) {
    control::Resolve resolve{host, {}};
    return control::ask(ethernet_, resolve) == Errc::ok && resolve.ethernet == ethernet;
  }
  void say(Session& to, std::uint8_t flags) noexcept {
    own_.flags = flags;
    own_.host = host().address();
    own_.boot_id = host().boot_id();
    own_.lifetime_ms =
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(options_.lifetime).count());
    Message message = Message::make(host().pool(), 0);
    if (!push_header(own_, message)) return;  // it is advertised again soon
    ++counted.sent;
    static_cast<void>(to.push(std::move(message)));
  }
  void broadcast() {
    say(*everybody_, introduced_ ? 0 : kAnswerMe);
    introduced_ = true;
    // A third of the lifetime, give or take a quarter of that: hosts that started together do not stay together.
    const Duration period = options_.lifetime / 3;
    const Duration spread = period / 2;
    host().events().schedule(
        say_, period - spread / 2 + Duration(host().random() % static_cast<std::uint64_t>(spread.count())));
  }
  /// `host` does not have `ethernet` any more. Another host may have it by now.
  void release(const EthernetAddress& ethernet, HostAddress host) noexcept { by_ethernet_.unbind(key(ethernet), host); }
  void forget(HostAddress host) noexcept {
    const Entry* const entry = table_.resolve(key(host));
    if (entry == nullptr) return;
    release(entry->ethernet, host);
    table_.unbind(key(host));
    this->host().peers().path_changed(host);
  }
  void forget_expired() {
    const Time now = host().now();
    search_again_ = now + kSearch;
    Time next = Time::max();
    std::vector<HostAddress> gone;
    table_.for_each([&](const HostKey& known, const Entry& entry) {
      if (entry.expires <= now) {
        gone.push_back(known.host);
      } else {
        next = std::min(next, entry.expires);
      }
    });
    for (const HostAddress host : gone) forget(host);
    // Not a timer for each entry: find() ignores expired ones anyway.
    if (!table_.empty()) host().events().schedule(expire_, std::max<Duration>(next - now, 1s));
  }

  Protocol& ethernet_;
  const VipHostsOptions options_;
  Advertisement own_;
  bool introduced_ = false;
  Time search_again_{};
  SessionRef everybody_;
  Map<HostKey, Entry> table_;
  Map<EthernetKey, HostAddress> by_ethernet_;
  Event say_;
  Event expire_;
};

}  // namespace
}  // namespace viphosts

Result<std::unique_ptr<Protocol>> make_viphosts(Host& host, std::string name, Protocol& ethernet,
                                                const VipHostsOptions& options) {
  using namespace std::chrono_literals;
  if (options.lifetime < 10ms || options.lifetime > viphosts::kLongest)
    return Error{Errc::invalid_argument, "lifetime must be from 10ms to 1h"};
  if (options.hosts == 0) return Error{Errc::invalid_argument, "hosts must be at least 1"};
  auto made = std::make_unique<viphosts::VipHostsProtocol>(host, std::move(name), ethernet, options);
  if (auto started = made->start(); !started) return started.error();
  return made;
}

ProtocolKind viphosts_kind() {
  return {.name = "VIPHOSTS",
          .summary = "the table of hosts on the Ethernet that speak VIP, kept by advertisement",
          .below = {{"the Ethernet", Service::datagram}},
          .options = {{"lifetime", OptionType::duration,
                       "how long others believe what this host advertises, 10ms to 1h (90s)"},
                      {"hosts", OptionType::number, "in the table at once (1024)"}},
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            VipHostsOptions options;
            options.lifetime = parts.options.duration("lifetime", options.lifetime);
            options.hosts = parts.options.number("hosts", options.hosts);
            return make_viphosts(parts.host, parts.name, *parts.below.front(), options);
          }};
}

}  // namespace lrpc::netrpc
