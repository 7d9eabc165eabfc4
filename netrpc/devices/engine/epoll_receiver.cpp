// The receiver where io_uring is refused, and for threads without a ring: epoll, recvmmsg and sendmsg. Shared by all
// threads that lead.
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/lack.h"
#include "netrpc/devices/engine/core.h"

namespace lrpc::netrpc {

class EpollReceiver final : public Receiver {
 public:
  explicit EpollReceiver(UringEngine& engine) : engine_(engine) {}

  Status open() {
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return system_error("epoll_create1", errno);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kKick}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, engine_.core_->kick_event, &event) != 0)
      return shim::epoll_ctl_error(errno);
    return {};
  }
  void receive(std::optional<Time> until) override {
    UringEngine::Core& core = *engine_.core_;
    add_sockets();
    core.flush();
    core.host->monitor().at_exit(nullptr);
    UringEngine::Core::add_one(core.counts.waits);
    core.host->monitor().unlock();
    std::array<epoll_event, 16> events{};
    const int count = wait(until, events);
    core.host->monitor().lock();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
      if (data == kKick) {
        std::uint64_t value = 0;
        (void)!::read(core.kick_event, &value, sizeof value);
      } else {
        take({static_cast<std::uint32_t>(data), static_cast<std::uint32_t>(data >> 32)});
      }
    }
  }
  /// Nothing to do: closing a socket removes it from the epoll set.
  void let_go() noexcept override {}

 private:
  static constexpr std::uint64_t kKick = ~std::uint64_t{0};
  static constexpr unsigned kBatch = 8;

  int wait(std::optional<Time> until, std::span<epoll_event> events) noexcept {
    const Duration left = until ? std::max(*until - engine_.core_->host->now(), Duration(0)) : Duration(0);
    const timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    return ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), until ? &time : nullptr,
                          nullptr);
  }

  void add_sockets() noexcept {
    UringEngine::Core& core = *engine_.core_;
    for (std::uint32_t index = 0; index < core.sockets.size(); ++index) {
      EngineSocket& socket = core.sockets[index];
      if (socket.fd < 0 || socket.in_epoll) continue;
      epoll_event event{.events = EPOLLIN, .data = {.u64 = std::uint64_t{socket.generation} << 32 | index}};
      socket.in_epoll = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.fd, &event) == 0;
    }
  }

  void take(SocketId id) noexcept {
    UringEngine::Core& core = *engine_.core_;
    const EngineSocket* const socket = core.find(id);
    if (socket == nullptr) return;
    if (socket->watched) return (void)core.readable(id);  // without memory, the next wait reports it again
    for (unsigned i = 0; i < kBatch; ++i) {
      parts_[i] = {areas_.get() + i * kLongestDatagram, kLongestDatagram};
      messages_[i] = {};
      messages_[i].msg_hdr.msg_iov = &parts_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
      messages_[i].msg_hdr.msg_name = names_[i].data();
      messages_[i].msg_hdr.msg_namelen = kAddressRoom;
      messages_[i].msg_hdr.msg_control = controls_[i].data();
      messages_[i].msg_hdr.msg_controllen = kControlRoom;
    }
    const int count = ::recvmmsg(socket->fd, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count < 0 && errno != EAGAIN && errno != EINTR) core.receive_failed(id, errno);
    for (int at = 0; at < count; ++at) {
      const auto i = static_cast<std::size_t>(at);
      const msghdr& header = messages_[i].msg_hdr;
      if ((header.msg_flags & MSG_TRUNC) != 0) {
        core.lost(id);
        continue;
      }
      core.arrived(id, {areas_.get() + i * kLongestDatagram, messages_[i].msg_len},
                   {names_[i].data(), std::min<std::size_t>(header.msg_namelen, kAddressRoom)},
                   {controls_[i].data(), std::min<std::size_t>(header.msg_controllen, kControlRoom)});
    }
  }

  UringEngine& engine_;
  UniqueFd epoll_;
  /// Costs no memory until the first datagram touches it: where there are rings, this receiver may never be used.
  const std::unique_ptr<std::byte[]> areas_ = std::make_unique_for_overwrite<std::byte[]>(kBatch * kLongestDatagram);
  std::array<std::array<std::byte, kAddressRoom>, kBatch> names_{};
  alignas(cmsghdr) std::array<std::array<std::byte, kControlRoom>, kBatch> controls_{};
  std::array<iovec, kBatch> parts_{};
  std::array<mmsghdr, kBatch> messages_{};
};

Result<std::unique_ptr<Receiver>> make_epoll_receiver(UringEngine& engine) {
  auto receiver = std::make_unique<EpollReceiver>(engine);
  if (auto opened = receiver->open(); !opened) return opened.error();
  return std::unique_ptr<Receiver>(std::move(receiver));
}

}  // namespace lrpc::netrpc
