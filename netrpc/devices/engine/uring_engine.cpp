#include "netrpc/devices/engine/uring_engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "netrpc/devices/engine/uring_receiver.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc {

Duration left_until(Time until) noexcept {
  return until == Time::max() ? Duration(-1) : std::max(until - MonotonicClock().now(), Duration(0));
}

UringEngine::Core::~Core() {
  for (const auto& ring : rings)
    if (const auto alive = ring.lock()) alive->end();
  for (const EngineSocket& socket : sockets)
    if (socket.fd >= 0) ::close(socket.fd);
  if (kick_event >= 0) ::close(kick_event);
}

void UringEngine::Core::arrived(SocketId id, std::span<const std::byte> data, std::span<const std::byte> from,
                                std::span<const std::byte> control) noexcept {
  Arrival arrival;
  arrival.socket = id;
  arrival.message = Message::copy_of_long(host->pool(), data);  // a copy that nobody else can write
  if (!arrival.message.allocated()) return lost(id);
  if (!from.empty()) std::memcpy(arrival.from.data(), from.data(), from.size());
  arrival.from_size = from.size();
  keep_local_address(control, arrival.from);
  if (!attempt([&] { arrivals.push_back(std::move(arrival)); })) return lost(id);
  add_one(counts.received);
}

bool UringEngine::Core::readable(SocketId id) noexcept {
  return attempt([&] { arrivals.emplace_back().socket = id; });
}

/// SocketReader::send_failed() may make a protocol send other messages at once.
void UringEngine::Core::flush(bool apart) noexcept {
  if (!flushing.empty()) return;  // the outer flush() sends them
  while (!outgoing.empty()) {
    std::swap(flushing, outgoing);
    flush_batch(apart);
    flushing.clear();
  }
}

void UringEngine::Core::flush_batch(bool apart) noexcept {
  for (Outgoing& out : flushing) {
    const EngineSocket* const socket = find(out.socket);
    if (socket == nullptr) continue;
    out.describe();
    if (::sendmsg(socket->fd, &out.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) send_failed(out.socket, errno);
    add_one(counts.sent);
    if (apart) add_one(counts.flushes);
  }
}

UringEngine::UringEngine(EngineKind kind) : kind_(kind), core_(std::make_unique<Core>()) {
  static std::atomic<std::uint64_t> last{0};
  core_->identifier = ++last;
}

Result<std::unique_ptr<UringEngine>> UringEngine::make(EngineKind kind) {
  std::unique_ptr<UringEngine> engine;
  if (kind != EngineKind::epoll) {
    engine.reset(new UringEngine(EngineKind::uring));
    if (auto opened = UringReceiver(*engine).open(); !opened) {
      if (kind == EngineKind::uring) return opened.error();
      engine.reset();
    }
  }
  if (engine == nullptr) engine.reset(new UringEngine(EngineKind::epoll));
  engine->core_->kick_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (engine->core_->kick_event < 0) return system_error("eventfd", errno);
  auto epoll = make_epoll_receiver(*engine);
  if (!epoll) return epoll.error();
  engine->core_->epoll = std::move(epoll).value();
  return engine;
}

UringEngine::~UringEngine() { stop(); }

std::size_t UringEngine::prepare_rings(std::size_t count) {
  if (kind_ != EngineKind::uring) return 0;
  core_->no_more_rings = true;
  while (core_->prepared.size() < count) {
    auto ring = std::make_shared<UringReceiver>(*this);
    if (!ring->prepare()) break;  // fewer suffice
    core_->prepared.push_back(std::move(ring));
  }
  return core_->prepared.size();
}

void UringEngine::attach(Host& host) {
  assert(host.monitor().held());
  if (core_->host == &host) [[likely]]
    return;
  assert(core_->host == nullptr && "an engine drives one host");
  core_->host = &host;
  host.events().on_earlier([this] {
    if (core_->leader != nullptr && core_->leader->in_kernel) kick();
  });
}

SocketId UringEngine::take(Host& host, int fd, SocketReader& reader, bool watched) {
  attach(host);
  core_->arrivals.reserve(1);  // one notice always fits: else an engine without memory would spin
  std::uint32_t index = 0;
  while (index < core_->sockets.size() && core_->sockets[index].fd >= 0) ++index;
  if (index == core_->sockets.size()) core_->sockets.emplace_back();
  core_->generations = (core_->generations + 1) & 0xfffffff;
  if (core_->generations == 0) core_->generations = 1;
  core_->sockets[index] = {fd, core_->generations, &reader, watched};
  kick();
  return {index, core_->generations};
}

void UringEngine::remove(SocketId id) noexcept {
  if (id.generation == 0) return;
  EngineSocket* const socket = core_->find(id);
  if (socket == nullptr) return;
  core_->flush();
  core_->host->monitor().at_exit(nullptr);
  const auto first = core_->arrivals.begin();
  core_->arrivals.erase(first, first + static_cast<std::ptrdiff_t>(std::exchange(core_->next_arrival, 0)));
  std::erase_if(core_->arrivals, [id](const Arrival& arrival) { return arrival.socket.generation == id.generation; });
  ::close(socket->fd);
  *socket = {};
  // Requests that are armed in other threads' rings keep the socket alive, and only those threads could cancel them: so
  // the rings are closed, and made again when their threads lead next.
  for (const auto& ring : core_->rings)
    if (const auto alive = ring.lock()) alive->let_go();
  std::erase_if(core_->rings, [](const auto& ring) { return ring.expired(); });
  kick();
}

bool UringEngine::tell_again(SocketId id) noexcept { return core_->readable(id); }

int UringEngine::descriptor(SocketId id) const noexcept {
  const EngineSocket* const socket = core_->find(id);
  return socket != nullptr ? socket->fd : -1;
}

void UringEngine::send(SocketId id, Message message, std::span<const std::byte> to) noexcept {
  if (!attempt([&] { core_->outgoing.emplace_back(); })) return core_->send_failed(id, ENOBUFS);
  Outgoing& out = core_->outgoing.back();
  out.socket = id;
  out.message = std::move(message);
  if (out.message.size() > 0) {
    std::array<iovec, kOutgoingSlices> parts{};
    if (out.message.describe(parts) == 0 && !out.message.flatten()) {
      core_->outgoing.pop_back();
      return core_->send_failed(id, ENOBUFS);
    }
  }
  std::memcpy(out.to.data(), to.data(), std::min(to.size(), kAddressRoom));
  out.to_size = std::min(to.size(), kAddressRoom);
  core_->host->monitor().at_exit(this);
}

void UringEngine::leaving_monitor() noexcept { core_->flush(); }

EngineStatistics UringEngine::statistics() const noexcept {
  const auto& counts = core_->counts;
  return {.waits = counts.waits.load(),
          .received = counts.received.load(),
          .direct = counts.direct.load(),
          .sent = counts.sent.load(),
          .flushes = counts.flushes.load(),
          .wakes = counts.wakes.load(),
          .takeovers = counts.takeovers.load(),
          .truncated = counts.truncated.load()};
}

}  // namespace lrpc::netrpc
