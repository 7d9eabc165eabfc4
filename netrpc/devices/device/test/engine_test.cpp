// Leader and followers: which thread receives, which takes over, and what idle threads cost.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engines.h"
#include "eventually.h"
#include "lrpc/detail/shim/system/fd.h"
#include "refused_calls.h"
#include "soft_limit.h"

namespace lrpc::netrpc::test {
namespace {

/// How often the threads of this process have slept (voluntary context switches).
long sleeps() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_nvcsw;
}

TEST_P(Engines, a_round_trip_is_one_wait_a_side_and_wakes_nobody) {
  b_->start(2);
  a_->start(1);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(round_trip());
  // On a busy machine a thread may stop for a millisecond, and the deputy steps in. So not every batch of round trips
  // meets the bounds, but some batch does.
  constexpr std::uint64_t kTrips = 100;
  constexpr std::uint64_t kSlack = kTrips / 20;
  std::string last;
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    const EngineStatistics a = a_->engine().statistics();
    const EngineStatistics b = b_->engine().statistics();
    for (std::uint64_t i = 0; i < kTrips; ++i) EXPECT_TRUE(round_trip());
    const EngineStatistics a2 = a_->engine().statistics();
    const EngineStatistics b2 = b_->engine().statistics();
    std::uint64_t waits = std::max(a2.waits - a.waits, b2.waits - b.waits);
    std::uint64_t wakes = std::max(a2.wakes - a.wakes, b2.wakes - b.wakes);
    std::uint64_t flushes = std::max(a2.flushes - a.flushes, b2.flushes - b.flushes);
    if (GetParam() != EngineKind::uring) flushes = 0;  // only in a ring does a wait submit the requests, too
    last =
        std::to_string(waits) + " waits, " + std::to_string(wakes) + " wakes, " + std::to_string(flushes) + " flushes";
    return waits <= kTrips + kSlack && wakes <= kSlack && flushes <= kSlack;
  })) << last;
}

TEST_P(Engines, an_engine_that_only_calls_needs_no_service_thread) {
  b_->start(1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(round_trip());
}

TEST_P(Engines, messages_that_arrive_while_nobody_waits_are_received_by_a_service_thread) {
  b_->start(2);
  a_->start(2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(round_trip());  // the caller has led, and stops leading
    push();
    ASSERT_TRUE(testing_lrpc::eventually([&] {
      const Shepherd inside((*a_)->monitor());
      return talker_->received == static_cast<std::uint64_t>(2 * i + 2);
    }));
  }
}

TEST_P(Engines, a_procedure_that_lasts_does_not_keep_others_from_being_served) {
  std::atomic<int> inside{0};
  std::atomic<bool> leave{false};
  procedure_ = [&] {
    ++inside;
    while (!leave) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  b_->start(4);
  for (int i = 0; i < 3; ++i) push();
  EXPECT_TRUE(testing_lrpc::eventually([&] { return inside == 3; }));
  leave = true;
  EXPECT_TRUE(a_->wait([&] { return talker_->received == 3; }));
}

TEST_P(Engines, events_run_while_nobody_calls) {
  a_->start(2);
  std::atomic<int> ran{0};
  std::unique_ptr<Event> event;
  a_->inside([&] {
    event = std::make_unique<Event>([&] {
      if (++ran < 10) (*a_)->events().schedule(*event, std::chrono::milliseconds(2));
    });
    (*a_)->events().schedule(*event, std::chrono::milliseconds(2));
  });
  EXPECT_TRUE(testing_lrpc::eventually([&] { return ran == 10; }));
  a_->inside([&] { event.reset(); });
  EXPECT_EQ(ran, 10);
}

TEST_P(Engines, an_event_scheduled_while_a_caller_waits_runs_in_time) {
  b_->start(1);
  bool ran = false;
  Event event([&] {
    ran = true;
    (*a_)->engine().wake(**a_);
  });
  std::thread scheduler([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Shepherd inside((*a_)->monitor());
    (*a_)->events().schedule(event, std::chrono::milliseconds(1));
  });
  EXPECT_TRUE(a_->wait([&] { return ran; }));
  scheduler.join();
}

/// Reads a byte at each notification.
class ReadsOne final : public SocketReader {
 public:
  explicit ReadsOne(int fd) : fd_(fd) {}
  void arrived(Message, std::span<const std::byte>) noexcept override { ADD_FAILURE(); }
  void send_failed(int) noexcept override { ADD_FAILURE(); }
  void readable() noexcept override {
    char byte = 0;
    if (::read(fd_, &byte, 1) == 1) read.push_back(byte);
  }
  std::string read;

 private:
  const int fd_;
};

TEST_P(Engines, a_watched_descriptor_is_read_by_its_reader_until_nothing_is_left) {
  b_->start(1);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd writes(ends[1]);
  ReadsOne reader(ends[0]);
  SocketId watched;
  a_->inside([&] { watched = a_->engine().watch(**a_, ends[0], reader); });
  for (const char* text : {"abc", "d", "efghij"}) {
    reader.read.clear();
    std::thread writer([&] { EXPECT_GT(::write(writes.get(), text, std::strlen(text)), 0); });
    EXPECT_TRUE(a_->wait([&] { return reader.read == text; })) << reader.read;
    writer.join();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(round_trip());  // a busy socket at the same time
  }
  EXPECT_EQ(::write(writes.get(), "k", 1), 1);
  a_->inside([&] { a_->engine().remove(watched); });
  ASSERT_TRUE(round_trip());
  EXPECT_EQ(reader.read, "efghij");
}

TEST_P(Engines, a_wait_ends_at_its_deadline) {
  EXPECT_FALSE(a_->wait([] { return false; }, std::chrono::milliseconds(5)));
  a_->start(1);
  EXPECT_FALSE(a_->wait([] { return false; }, std::chrono::milliseconds(5)));  // as a follower
}

TEST_P(Engines, who_waits_is_woken_by_another_thread_that_is_not_the_leader) {
  bool set = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Shepherd inside((*a_)->monitor());
    set = true;
    a_->engine().wake(**a_);
  });
  EXPECT_TRUE(a_->wait([&] { return set; }));
  other.join();
}

TEST_P(Engines, many_callers_at_once_all_get_through) {
  b_->start(3);
  a_->start(2);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        if (!round_trip()) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST_P(Engines, an_idle_engine_wakes_up_for_nothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own that wakes up";
#endif
  b_->start(3);
  a_->start(3);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(round_trip());
  // The deputies need several polls to notice that no thread calls any more; and a machine that stops and continues may
  // wake all threads.
  long woken = 0;
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    const long before = sleeps();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    woken = sleeps() - before;
    return woken <= 2;  // this thread wakes once
  })) << woken;
}

TEST_P(Engines, service_threads_start_and_stop_again_and_again) {
  for (int i = 0; i < 20; ++i) {
    b_->start(3);
    a_->start(1);
    ASSERT_TRUE(round_trip());
    a_->engine().stop();
    b_->engine().stop();
  }
}

TEST_P(Engines, a_thread_that_leads_for_the_first_time_without_a_free_descriptor_receives) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers need descriptors of their own";
#endif
  b_->start(1);
  ASSERT_TRUE(round_trip());
  // Some of these messages are received in existing rings, others where no ring can be created.
  std::optional<testing_lrpc::SoftLimit> few(std::in_place, 0);
  const std::uint64_t waits = a_->engine().statistics().waits;
  int failed = 0;
  std::thread([&] {
    for (int i = 0; i < 20; ++i)
      if (!round_trip()) ++failed;
    a_->wait([] { return false; }, std::chrono::milliseconds(50));
  }).join();
  EXPECT_TRUE(round_trip());
  few.reset();
  EXPECT_EQ(failed, 0);
  EXPECT_LE(a_->engine().statistics().waits - waits, 100U) << "it spins";
}

/// From now on no table of this thread's rings takes a socket.
bool refuse_tables() {
  return testing_lrpc::filter_this_thread(std::array<sock_filter, 6>{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register, 0, 3),
       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args) + 8),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IORING_REGISTER_FILES_UPDATE, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}});
}

TEST_P(Engines, a_ring_whose_table_takes_no_socket_carries_messages) {
  b_->start(1);
  bool refuses = false;
  int arrived = 0;
  // The thread leads with a ring of its own.
  std::thread([&] {
    refuses = refuse_tables();
    while (refuses && arrived < 20 && round_trip()) ++arrived;
  }).join();
  if (!refuses) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_EQ(arrived, 20);
}

TEST_P(Engines, a_ring_looks_up_descriptors_while_nobody_can_close_them) {
  b_->start(1);
  std::promise<int> listener;
  std::atomic<bool> over = false;
  bool arrived = false;
  std::thread caller([&] {
    int made = -1;
    if (refuse_tables())
      made = testing_lrpc::set_filter(testing_lrpc::at_each_call(SYS_io_uring_enter, SECCOMP_RET_USER_NOTIF),
                                      SECCOMP_FILTER_FLAG_NEW_LISTENER);
    listener.set_value(made);
    if (made >= 0) arrived = round_trip();
    over = true;
  });
  const UniqueFd calls(listener.get_future().get());
  std::optional<bool> inside;  // Whether the caller's first requests are submitted inside the monitor.
  while (calls && !over) {
    testing_lrpc::answer_call(calls.get(), [&](const seccomp_notif& asked) {
      const bool submits = asked.data.args[1] != 0;
      if (submits && !inside) inside = !Shepherd((*a_)->monitor(), std::try_to_lock).owns_lock();
      return 0;
    });
  }
  caller.join();
  if (!calls) GTEST_SKIP() << "no filters of seccomp can be set";
  EXPECT_TRUE(arrived);
  EXPECT_EQ(inside, GetParam() == EngineKind::uring ? std::optional(true) : std::nullopt);
}

TEST_P(Engines, sockets_come_and_go_while_threads_wait) {
  b_->start(2);
  a_->start(2);
  for (int i = 0; i < 20; ++i) {
    UdpOptions options;
    options.ports.peers = 30000;
    std::unique_ptr<Protocol> another;
    std::unique_ptr<Talker> talker;
    a_->inside([&] {
      talker = std::make_unique<Talker>(**a_, false);
      auto made = make_udp(**a_, "another", options);
      ASSERT_TRUE(made);
      another = std::move(made).value();
      ASSERT_TRUE(another->open_enable(*talker, {kEcho + static_cast<ProtocolNumber>(i), {}, {}}));
    });
    ASSERT_TRUE(round_trip());
    a_->inside([&] {
      another.reset();
      talker.reset();
    });
    ASSERT_TRUE(round_trip());
  }
}

INSTANTIATE_TEST_SUITE_P(, Engines, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const testing::TestParamInfo<EngineKind>& of) {
                           return std::string(of.param == EngineKind::uring ? "uring" : "epoll");
                         });

}  // namespace
}  // namespace lrpc::netrpc::test
