// What the broker's own threads do for the client's half: keepalives and UNBINDs.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "path_service.h"
#include "rounds.h"

namespace lrpc::netpath {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kUnbindPatience{2'000};
constexpr milliseconds kPingPatience{5'000};

}  // namespace

bool PathService::any_unbinds() const {
  std::lock_guard lock(mutex_);
  return !unbinds_.empty();
}

void PathService::send_unbinds() {
  std::map<HostAddress, Unbinds> sorted;
  std::vector<Unbinds*> by_host;
  {
    std::lock_guard lock(mutex_);
    try {
      while (!unbinds_.empty()) {
        const auto [found, is_new] = sorted.try_emplace(unbinds_.front().host);
        if (is_new) by_host.push_back(&found->second);
        found->second.splice(found->second.end(), unbinds_, unbinds_.begin());
      }
    } catch (const std::bad_alloc&) {
      unsent_.splice(unsent_.end(), unbinds_);
    }
  }
  const milliseconds limit = patience(kUnbindPatience, options_.keepalive, by_host.size());
  for_each_host(by_host.size(), [&](std::size_t i) {
    Unbinds& unbinds = *by_host[i];
    auto one = unbinds.begin();
    const auto until = Clock::now() + limit;  // so that a host that answers each, but late, does not delay a round
    bool in_vain = false;
    try {
      for (; one != unbinds.end() && (one == unbinds.begin() || Clock::now() < until); ++one) {
        std::size_t size = 0;
        const std::string request = encode_unbind(one->key);
        const Errc sent = transport_.call(one->host, static_cast<std::uint16_t>(Command::unbind), bytes_of(request), {},
                                          size, limit, {});
        in_vain = sent == Errc::timed_out || sent == Errc::peer_gone || sent == Errc::host_unreachable ||
                  sent == Errc::call_lost || wanting(sent);
        if (in_vain) break;
      }
    } catch (const std::bad_alloc&) {
      in_vain = true;
    }
    // If one has failed, the host's remaining UNBINDs wait for the next keepalive. If the host is only slow, the next
    // round sends them.
    std::lock_guard lock(mutex_);
    // These are older than those that have come meanwhile.
    Unbinds& rest = in_vain ? unsent_ : unbinds_;
    rest.splice(rest.begin(), unbinds, one, unbinds.end());
  });
  std::lock_guard lock(mutex_);
  bound_unbinds_locked();
}

void PathService::bound_unbinds_locked() noexcept {
  const std::size_t most = std::max<std::size_t>(options_.max_paths, 1);
  for (Unbinds* const left : {&unsent_, &unbinds_}) {  // of hosts that do not answer, and of hosts that are slow
    if (left->size() <= most) continue;
    try {
      std::map<HostAddress, std::size_t> of_host;
      std::map<HostAddress, std::size_t> go;
      for (const Unbind& one : *left) ++of_host[one.host];
      for (std::size_t over = left->size() - most; over != 0; --over) {
        const auto worst = std::ranges::max_element(of_host, {}, [](const auto& host) { return host.second; });
        --worst->second;
        ++go[worst->first];
      }
      std::erase_if(*left, [&](const Unbind& one) {
        const auto of = go.find(one.host);
        return of != go.end() && of->second != 0 && of->second-- != 0;
      });
    } catch (const std::bad_alloc&) {
      while (left->size() > most) left->pop_front();
    }
  }
}

void PathService::retry_unbinds(Clock::time_point now) {
  std::unique_lock lock(mutex_);
  std::set<HostAddress> in_use;  // there our keepalives keep also unused bindings alive
  for (const auto& [place, weak] : paths_) in_use.insert(place.second->host);
  for (Unbinds* const left : {&unsent_, &unbinds_}) {
    std::erase_if(*left, [&](const Unbind& one) {
      return now - one.since > options_.forget && !in_use.contains(one.host);  // dropped there without keepalives
    });
  }
  bound_unbinds_locked();
  unbinds_.splice(unbinds_.begin(), unsent_);
  lock.unlock();
  if (on_work) on_work();
}

void PathService::ping() {
  using Paths = std::vector<std::shared_ptr<Path>>;
  std::map<HostAddress, Paths> sorted;
  std::vector<std::pair<HostAddress, Paths>> by_host;
  std::shared_ptr<Path> held;  // so that it is never released under the lock
  {
    std::lock_guard lock(mutex_);
    for (const auto& [place, weak] : paths_) {
      // An ended path to a group's member is for rebind().
      if (place.first == 0 && place.second->has_ended()) continue;
      held = weak.lock();
      if (held != nullptr) sorted[held->host].push_back(std::move(held));
    }
    silence_.keep([&](HostAddress host) { return sorted.contains(host); });
    for (auto& one : sorted) by_host.emplace_back(one.first, std::move(one.second));
    // Those that did not answer last time come last.
    std::stable_partition(by_host.begin(), by_host.end(),
                          [&](const auto& one) { return !silence_.suspected(one.first); });
  }
  ++rounds_;
  const milliseconds usual = patience(kPingPatience, options_.keepalive, by_host.size());
  for_each_host(by_host.size(), [&](std::size_t i) {
    const auto [host, paths] = std::move(by_host[i]);
    ping_host(host, paths, usual);
    for (const auto& path : paths)
      if (path->has_ended() && path->local_binding != 0) on_ended(path->local_binding);
  });
}

void PathService::ping_host(HostAddress host, std::vector<std::shared_ptr<Path>> paths, milliseconds usual) {
  std::erase_if(paths, [](const auto& path) { return path->has_ended(); });
  if (const std::size_t most = std::clamp<std::size_t>(options_.named, 1, kMaxPinged); paths.size() > most) {
    // This PING keeps the others alive, too, and a later one names them: those named longest ago come first.
    const auto end = paths.begin() + static_cast<std::ptrdiff_t>(most);
    std::ranges::nth_element(paths, end, {}, [](const auto& path) { return path->asked_; });
    paths.erase(end, paths.end());
  }
  if (paths.empty()) return;
  for (const auto& path : paths) path->asked_ = rounds_;
  PingMessage message{boot_, {}};
  for (const auto& path : paths) message.bindings.push_back(path->key().id);
  std::array<std::byte, 16 + kMaxPinged> reply;
  std::size_t size = 0;
  const std::string request = encode(message);
  milliseconds limit = usual;
  {
    std::lock_guard lock(mutex_);
    limit = silence_.patience(host, options_.now(), usual, kLeastPatience);
  }
  const Errc sent =
      transport_.call(host, static_cast<std::uint16_t>(Command::ping), bytes_of(request), reply, size, limit, {});
  {
    std::lock_guard lock(mutex_);
    // Nobody can tell whether the host has answered: no sign of life, and no silence; but it is asked again soon.
    if (unsent(sent) || sent == Errc::call_lost) {
      silence_.missed(host);
      return;
    }
    if (sent == Errc::timed_out || sent == Errc::host_unreachable) {
      silence_.missed(host);
      if (!silence_.over(host, options_.now())) return;
    } else if (sent != Errc::peer_gone) {
      silence_.heard(host, options_.now());
    }
  }
  if (sent == Errc::limit_reached) return;  // it lives, and is busy
  const auto answer =
      sent == Errc::ok ? decode_ping_answer(std::span(reply).first(std::min(size, reply.size()))) : std::nullopt;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const bool alive =
        answer && answer->server_boot == paths[i]->key().boot && i < answer->alive.size() && answer->alive[i];
    if (!alive) paths[i]->end();
  }
}

milliseconds PathService::pause() const {
  std::lock_guard lock(mutex_);
  return silence_.pause(options_.keepalive);
}

}  // namespace lrpc::netpath
