// Threads that wait without memory.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <optional>

#include "lrpc/netrpc/host.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "soft_limit.h"

namespace lrpc::netrpc::test {
namespace {

/// Watches an eventfd, which is readable at once.
class Watcher final : public SocketReader {
 public:
  Watcher(UringEngine& engine, Host& host) : engine_(engine), fd_(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
    id_ = engine.watch(host, fd_, *this);
  }
  ~Watcher() { engine_.remove(id_); }
  void arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept override {}
  void readable() noexcept override {
    std::uint64_t value = 0;
    told = ::read(fd_, &value, sizeof value) == sizeof value || told;
  }
  bool told = false;

 private:
  UringEngine& engine_;
  const int fd_;
  SocketId id_;
};

bool hears(UringEngine& engine, Host& host, const Watcher& watcher) {
  return engine.wait(
      host, [&watcher] { return watcher.told; }, host.now() + std::chrono::minutes(4));
}

bool hears_without_memory(UringEngine& engine, Host& host, const Watcher& watcher) {
  deny_memory(true);
  const bool heard = hears(engine, host, watcher);
  deny_memory(false);
  return heard;
}

TEST(EngineMemory, a_thread_without_any_hears_of_a_socket_that_is_new) {
  for (const EngineKind kind : {EngineKind::epoll, EngineKind::automatic}) {
    const auto engine = UringEngine::make(kind).value();
    const MonotonicClock clock;
    Host host({}, clock, *engine);
    const Shepherd inside(host.monitor());
    const Watcher first(*engine, host);
    ASSERT_TRUE(hears(*engine, host, first));
    const Watcher second(*engine, host);
    EXPECT_TRUE(hears_without_memory(*engine, host, second));
  }
}

TEST(EngineMemory, a_thread_without_any_hears_of_each_of_many_sockets) {
  for (const EngineKind kind : {EngineKind::epoll, EngineKind::automatic}) {
    const auto engine = UringEngine::make(kind).value();
    const MonotonicClock clock;
    Host host({}, clock, *engine);
    const Shepherd inside(host.monitor());
    std::deque<Watcher> all;
    for (int i = 0; i < 200; ++i) {
      all.emplace_back(*engine, host);
      ASSERT_TRUE((i == 0 ? hears : hears_without_memory)(*engine, host, all.back())) << i;
    }
  }
}

TEST(EngineMemory, a_thread_whose_ring_cannot_be_made_again_needs_none) {
  const auto engine = UringEngine::make(EngineKind::automatic).value();
  const MonotonicClock clock;
  Host host({}, clock, *engine);
  const Shepherd inside(host.monitor());
  std::optional<Watcher> first(std::in_place, *engine, host);
  ASSERT_TRUE(hears(*engine, host, *first));
  first.reset();  // closes the ring
  const Watcher second(*engine, host);
  const testing_lrpc::SoftLimit no_ring(0);
  EXPECT_TRUE(hears_without_memory(*engine, host, second));
}

}  // namespace
}  // namespace lrpc::netrpc::test
