// Threads that wait without memory.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lrpc/netrpc/host.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/sim/test/counted_allocations.h"

namespace lrpc::netrpc::test {
namespace {

/// Watches an eventfd, which is readable at once.
class Watcher final : public SocketReader {
 public:
  Watcher(UringEngine& engine, Host& host) : fd_(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)) {
    (void)engine.watch(host, fd_, *this);
  }
  void arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept override {}
  void readable() noexcept override {
    std::uint64_t value = 0;
    told = ::read(fd_, &value, sizeof value) == sizeof value || told;
  }
  bool told = false;

 private:
  const int fd_;
};

TEST(EngineMemory, a_thread_without_any_hears_of_a_socket_that_is_new) {
  for (const EngineKind kind : {EngineKind::epoll, EngineKind::automatic}) {
    const auto engine = UringEngine::make(kind).value();
    const MonotonicClock clock;
    Host host({}, clock, *engine);
    const Shepherd inside(host.monitor());
    Watcher first(*engine, host);
    const auto hears = [&](const Watcher& watcher) {
      return engine->wait(
          host, [&watcher] { return watcher.told; }, host.now() + std::chrono::minutes(4));
    };
    ASSERT_TRUE(hears(first));
    Watcher second(*engine, host);
    deny_memory(true);
    const bool heard = hears(second);
    deny_memory(false);
    EXPECT_TRUE(heard);
  }
}

}  // namespace
}  // namespace lrpc::netrpc::test
