// The page that a server and the processor allocator share: its words, its descriptor, and its address, which never
// faults.
#include "lrpc/detail/shim/binder/allocator_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace lrpc::shim {
namespace {

TEST(AllocatorPage, of_zeros_means_that_the_servers_own_rule_holds) {
  const AllocatorPageMapping page;
  EXPECT_EQ(AllocatorRuling::pollers(page->ruling.word.load()), AllocatorRuling::kMostPollers);
  EXPECT_FALSE(AllocatorRuling::rules(page->ruling.word.load()));
  EXPECT_EQ(AllocatorRuling::pollers(AllocatorRuling::kAsleep), AllocatorRuling::kMostPollers);
  EXPECT_EQ(AllocatorRuling::pollers(AllocatorRuling::of(0)), 0U);
  EXPECT_EQ(AllocatorRuling::pollers(AllocatorRuling::of(3)), 3U);
}

TEST(AllocatorPage, is_one_for_both_sides) {
  auto fd = create_allocator_page();
  ASSERT_TRUE(fd);
  AllocatorPageMapping server;
  AllocatorPageMapping allocator;
  ASSERT_TRUE(server.put(UniqueFd(fcntl(fd->get(), F_DUPFD_CLOEXEC, 0))));
  ASSERT_TRUE(allocator.put(*std::move(fd)));
  server->counters.hits.store(7);
  server->counters.wants_poller.store(1);
  allocator->ruling.word.store(AllocatorRuling::of(0));
  EXPECT_EQ(copy_counters(allocator->counters), (CountersCopy{.hits = 7, .wants_poller = true}));
  EXPECT_EQ(server->ruling.word.load(), AllocatorRuling::of(0));
  server.put_zeros();
  EXPECT_EQ(server->ruling.word.load(), AllocatorRuling::kNone);
  EXPECT_EQ(copy_counters(allocator->counters).hits, 7U) << "the other side keeps its own";
}

TEST(AllocatorPage, that_is_none_is_refused_and_what_lay_there_stays) {
  AllocatorPageMapping page;
  page->counters.hits.store(3);
  UniqueFd unsealed(memfd_create("no-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kAllocatorPageSize), 0);
  EXPECT_EQ(page.put(std::move(unsealed)).code(), Errc::bad_message);
  UniqueFd short_one(memfd_create("no-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(short_one.get(), 100), 0);
  ASSERT_EQ(fcntl(short_one.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(page.put(std::move(short_one)).code(), Errc::bad_message);
  EXPECT_EQ(page.put(UniqueFd(open("/dev/zero", O_RDWR | O_CLOEXEC))).code(), Errc::bad_message);
  EXPECT_EQ(page.put(UniqueFd()).code(), Errc::bad_message);
  EXPECT_EQ(page->counters.hits.load(), 3U);
}

TEST(AllocatorPage, can_be_read_and_written_while_it_is_changed) {
  AllocatorPageMapping page;
  std::atomic<bool> stop = false;
  std::thread user([&] {
    while (!stop) {
      page->counters.hits.fetch_add(1);
      (void)page->ruling.word.load();
    }
  });
  for (int i = 0; i < 200; ++i) {
    auto fd = create_allocator_page();
    ASSERT_TRUE(fd);
    ASSERT_TRUE(page.put(*std::move(fd)));
    page.put_zeros();
  }
  stop = true;
  user.join();
}

TEST(AllocatorPage, goes_back_to_zeros_where_no_memory_is_to_be_had) {
  AllocatorPageMapping page;
  auto fd = create_allocator_page();
  ASSERT_TRUE(fd);
  ASSERT_TRUE(page.put(*std::move(fd)));
  page->counters.hits.store(7);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit none{1, before.rlim_max};  // the kernel would take 0 for no limit
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &none), 0);
  page.put_zeros();
  const auto hits = page->counters.hits.load();
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_EQ(hits, 0U) << "the other domain's page is still there";
  page->counters.hits.store(7);
  page.put_zeros();
  EXPECT_EQ(page->counters.hits.load(), 0U) << "and again";
}

TEST(AllocatorPage, is_not_there_in_a_fork_child) {
  const AllocatorPageMapping page;
  EXPECT_TRUE(page.here());
  const pid_t child = fork();
  if (child == 0) _exit(page.here() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lrpc::shim
