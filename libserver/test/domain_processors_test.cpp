// The processors of a domain whose clerk's thread has gone.
#include "poller/domain_processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <thread>

#include "eventually.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::server {
namespace {

TEST(ProcessorsOfADomain, stay_what_they_were_when_their_thread_has_gone) {
  DomainProcessors processors;
  pid_t clerk = -1;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    processors.refer_to_this_thread();
    clerk = ::gettid();
  }).join();
  ASSERT_TRUE(testing_lrpc::eventually([&] { return ::syscall(SYS_tgkill, ::getpid(), clerk, 0) != 0; }));
  processors.refresh(shim::ticks());
  EXPECT_EQ(processors.count_if([](std::uint16_t) { return true; }), 1U) << "none would be taken for unknown ones";
}

}  // namespace
}  // namespace lrpc::server
