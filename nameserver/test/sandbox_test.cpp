// What lrpcd cannot do in its sandbox: a process enters exactly that sandbox, and tries.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "attempts.h"
#include "daemon/daemon_sandbox.h"
#include "loop/event_loop.h"
#include "lrpc/detail/shim/system/fd.h"
#include "test_peer.h"

namespace lrpc::nameserver::test {
namespace {

using sandbox::test::Attempt;
using sandbox::test::in_a_child;
using sandbox::test::not_refused;
using sandbox::test::opening;
using sandbox::test::RingIntruder;
using sandbox::test::socket_of;
using sandbox::test::Victim;

class LrpcdSandbox : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = in_a_child([&]() -> std::string {
      const auto entered = sandbox::enter(sandbox_of_daemon(directory_ / "s"));
      if (!entered) return entered.error().message();
      return entered->complete() ? "" : entered->text();
    });
    if (!why.empty()) GTEST_SKIP() << why;
  }
  std::string shut_in(const std::function<std::string()>& body) {
    return in_a_child([&] {
      const auto entered = sandbox::enter(sandbox_of_daemon(directory_ / "s"));
      return entered ? body() : entered.error().message();
    });
  }

  TemporaryDirectory directory_;
};

TEST_F(LrpcdSandbox, leaves_no_files_no_processes_no_threads_and_no_sockets) {
  const Victim victim;
  std::vector<Attempt> attempts = sandbox::test::forbidden_to_all(victim.pid());
  attempts.push_back(socket_of("Unix", AF_UNIX, SOCK_SEQPACKET));
  attempts.push_back(socket_of("UDP", AF_INET, SOCK_DGRAM));
  attempts.push_back(opening(directory_ / "new", O_WRONLY | O_CREAT));
  attempts.push_back(opening(directory_ / ".", O_RDONLY | O_DIRECTORY));
  attempts.push_back(opening("/etc/passwd", O_RDONLY));
  attempts.push_back({"pthread_create", [] {
                        pthread_t thread{};
                        const auto body = [](void*) -> void* { return nullptr; };
                        const int err = ::pthread_create(&thread, nullptr, body, nullptr);
                        if (err == 0) ::pthread_join(thread, nullptr);
                        return err;
                      }});
  attempts.push_back({"bind", [] { return ::bind(0, nullptr, 0) == 0 ? 0 : errno; }});
  EXPECT_EQ(shut_in([&] { return not_refused(attempts); }), "");
}

TEST_F(LrpcdSandbox, leaves_what_introducing_two_domains_needs) {
  std::ofstream(directory_ / "s") << "a socket's stand-in";
  auto pair = shim::make_socket_pair();
  ASSERT_TRUE(pair);
  EXPECT_EQ(shut_in([&]() -> std::string {
              const UniqueFd region(::memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
              if (!region || ::ftruncate(region.get(), 8192) != 0) return "memfd";
              if (::fcntl(region.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return "seals";
              if (auto known = shim::peer_credentials(pair->first.get()); !known) return known.error().message();
              if (auto pidfd = shim::peer_pidfd_by_pid(pair->first.get()); !pidfd) return pidfd.error().message();
              if (::sysconf(_SC_NPROCESSORS_ONLN) < 1) return "processors";
              return ::unlink((directory_ / "s").c_str()) == 0 ? "" : "its socket cannot be removed";
            }),
            "");
}

TEST_F(LrpcdSandbox, its_ring_does_nothing_but_poll) {
  const std::string refused = in_a_child([&]() -> std::string {
    auto loop = EventLoop::create(Backend::io_uring);
    if (!loop) return "no ring: " + loop.error().message();
    const std::vector<int> rings = RingIntruder::rings();
    if (rings.size() != 1) return std::to_string(rings.size()) + " rings";
    RingIntruder intruder(rings.front(), 256, 4096, IORING_SETUP_R_DISABLED);
    if (!intruder.mapped()) return "the ring is not as it was";
    if (const auto entered = sandbox::enter(sandbox_of_daemon(directory_ / "s")); !entered)
      return entered.error().message();
    return intruder.not_refused({IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE}, IORING_OP_LAST - 1);
  });
  if (refused.starts_with("no ring")) GTEST_SKIP() << refused;
  EXPECT_EQ(refused, "");
}

}  // namespace
}  // namespace lrpc::nameserver::test
