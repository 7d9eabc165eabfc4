// The pages that servers share with the processor allocator, seen from a server.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "lrpc/detail/shim/binder/allocator_page.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using shim::AllocatorRuling;

/// A server without the library: it exports, maps its page, and writes anything into it.
class PagedPeer : public TestPeer {
 public:
  PagedPeer(const std::string& path, const std::string& name) : TestPeer(path) {
    export_name(name);
    EXPECT_TRUE(is_served());  // the page comes before this answer
    EXPECT_TRUE(page) << "no page came";
    struct stat status {};
    EXPECT_EQ(::fstat(page.get(), &status), 0);
    EXPECT_EQ(status.st_size, static_cast<off_t>(shim::kAllocatorPageSize));
    const auto mapped = mapping.put(std::move(page));
    EXPECT_TRUE(mapped) << mapped.error().message();
  }
  [[nodiscard]] std::uint32_t word() const { return mapping->ruling.word.load(); }
  [[nodiscard]] bool asleep() const { return (word() & AllocatorRuling::kAsleep) != 0; }
  /// Reports hot calls that only E-stacks serve, without a pause, until `holds`. Wakes the allocator whenever it has
  /// fallen asleep, as it may after this process stood still. False: `holds` never became true.
  template <class Condition>
  [[nodiscard]] bool busy_until(Condition holds) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    std::optional<std::uint32_t> woken;
    do {
      const std::uint32_t epoch = mapping->ruling.epoch.load();
      if (asleep() && woken != epoch) {
        woken = epoch;
        wake();
      }
      for (int i = 0; i < 1000; ++i) {
        mapping->counters.hot_calls.fetch_add(1);
        mapping->counters.wants_poller.store(1);
      }
      if (holds()) return true;
    } while (std::chrono::steady_clock::now() < until);
    return false;
  }
  void wake() { ASSERT_TRUE(shim::send_message(fd(), {0, shim::WakeAllocator{}, {}, {}})); }

  shim::AllocatorPageMapping mapping;
};

/// Ticks so long that a busy server is busy in most of them, even on a loaded machine.
constexpr milliseconds kLongTick{10};

class Pages : public WithNameserver {
 protected:
  Pages() {
    options_.allocator_tick = milliseconds(2);
    options_.allocator_rules_always = true;
    options_.machine_load = [] { return MachineLoad{.processors = 4, .idle = 3, .running = 1}; };
  }
};
LRPC_ON_BOTH_BACKENDS(Pages);

TEST_P(Pages, come_with_the_first_export_and_go_with_the_connection) {
  START_NAMESERVER();
  {
    PagedPeer server(path(), "files");
    EXPECT_TRUE(server.asleep());
    server.export_name("more");
    EXPECT_TRUE(server.is_served());
    EXPECT_FALSE(server.page) << "one is enough";
    EXPECT_EQ(nameserver_->allocator_statistics().pages, 1U);
    TestPeer client(path());
    EXPECT_TRUE(client.is_served());
    EXPECT_FALSE(client.page) << "who exports nothing gets none";
  }
  EXPECT_TRUE(back_to_idle());
  EXPECT_TRUE(eventually([&] { return nameserver_->allocator_statistics().pages == 0; }));
}

TEST_P(Pages, there_are_none_without_an_allocator) {
  options_.allocator_tick = kNoLimit;
  START_NAMESERVER();
  TestPeer server(path());
  server.export_name("files");
  EXPECT_TRUE(server.is_served());
  EXPECT_FALSE(server.page);
  EXPECT_EQ(nameserver_->allocator_statistics().pages, 0U);
}

TEST_P(Pages, say_who_may_poll_once_a_server_has_woken_the_allocator) {
  options_.allocator_tick = kLongTick;
  START_NAMESERVER();
  PagedPeer busy(path(), "busy");
  PagedPeer idle(path(), "idle");
  busy.wake();
  EXPECT_TRUE(busy.busy_until([&] {
    return busy.word() == AllocatorRuling::of(1) && idle.word() == AllocatorRuling::of(0) &&
           nameserver_->allocator_statistics().granted == 1;
  }));
}

TEST_P(Pages, say_asleep_when_nobody_is_active_and_no_tick_comes_after_that) {
  START_NAMESERVER();
  PagedPeer server(path(), "files");
  const std::uint32_t epoch = server.mapping->ruling.epoch.load();
  server.wake();
  EXPECT_TRUE(eventually([&] { return nameserver_->allocator_statistics().ticks > 0; }));
  EXPECT_TRUE(eventually([&] { return server.asleep() && nameserver_->allocator_statistics().asleep; }));
  EXPECT_NE(server.mapping->ruling.epoch.load(), epoch);
  const std::uint64_t ticks = nameserver_->allocator_statistics().ticks;
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_EQ(nameserver_->allocator_statistics().ticks, ticks);
  EXPECT_TRUE(nameserver_->allocator_statistics().asleep);
  server.wake();
  EXPECT_TRUE(eventually([&] { return nameserver_->allocator_statistics().ticks > ticks; }));
}

TEST_P(Pages, full_of_garbage_change_nothing_for_others) {
  options_.allocator_tick = kLongTick;
  START_NAMESERVER();
  PagedPeer honest(path(), "honest");
  PagedPeer liar(path(), "liar");
  std::atomic<bool> stop = false;
  std::thread scribbler([&] {
    for (std::uint64_t i = 1; !stop; i = i * 6364136223846793005U + 1) {
      liar.mapping->counters.hits.store(i);
      liar.mapping->counters.hot_calls.store(~i);
      liar.mapping->counters.misses.store(i << 7);
      liar.mapping->counters.evictions.store(i >> 3);
      liar.mapping->counters.wants_poller.store(static_cast<std::uint32_t>(i));
      liar.mapping->counters.polling.store(static_cast<std::uint32_t>(i >> 32));
      liar.mapping->ruling.word.store(static_cast<std::uint32_t>(i >> 16));
      liar.mapping->ruling.epoch.store(static_cast<std::uint32_t>(i >> 16));
    }
  });
  honest.wake();
  EXPECT_TRUE(honest.busy_until([&] { return honest.word() == AllocatorRuling::of(1); }));
  stop = true;
  scribbler.join();
  EXPECT_TRUE(eventually([&] { return honest.asleep(); })) << "the garbage does not keep it awake for ever";
}

TEST_P(Pages, are_what_a_wake_needs) {
  START_NAMESERVER();
  TestPeer hostile(path());
  hostile.ask(shim::WakeAllocator{});
  EXPECT_EQ(hostile.next_failure(), Errc::bad_message);
  EXPECT_TRUE(hostile.hung_up_on());
  TestPeer page_sender(path());
  page_sender.ask(shim::PollerPage{});
  EXPECT_EQ(page_sender.next_failure(), Errc::bad_message);
  EXPECT_EQ(nameserver_->allocator_statistics().ticks, 0U);
}

}  // namespace
}  // namespace lrpc::nameserver::test
