// A hostile binder sends a client descriptors of the wrong kinds.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bad_packets.h"
#include "bystander.h"
#include "length.h"
#include "lrpc/client.h"
#include "processor_time.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;
namespace shim = lrpc::shim;

class BadDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    PrivateServer honest = start_private_server();
    auto client = Conformance::Client::import_over(std::move(honest.socket));
    ASSERT_TRUE(client) << client.error().message();
    honest_ = std::move(honest.process);
    bystander_ = std::make_unique<Bystander>(*std::move(client));
    before_ = open_descriptors();
  }
  void TearDown() override {
    if (bystander_ == nullptr) return;
    bystander_->call(50);
  }
  static lrpc::Result<Conformance::Client> import_with(const lrpc::UniqueFd& region, const lrpc::UniqueFd& bell,
                                                       const lrpc::ImportOptions& options = {}) {
    auto ends = answered_pair(encoded(conformance_answer()), std::array{region.get(), bell.get()});
    if (!ends) return ends.error();
    return Conformance::Client::import_over(std::move(ends->first), options);
  }

  Process honest_;
  std::unique_ptr<Bystander> bystander_;
  std::size_t before_ = 0;
};

TEST_F(BadDescriptors, in_place_of_a_region_are_an_error_that_says_so) {
  for (const Descriptor& wrong : not_regions()) {
    auto bell = shim::make_socket_pair();
    ASSERT_TRUE(bell);
    const auto client = import_with(wrong.make(), bell->first);
    ASSERT_FALSE(client) << wrong.name;
    EXPECT_TRUE(client.code() == Errc::bad_message || client.code() == Errc::system_error)
        << wrong.name << ": " << client.error().message();
    EXPECT_FALSE(client.error().text.empty()) << wrong.name;
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; })) << "some are closed on another thread";
}

TEST_F(BadDescriptors, in_place_of_a_bell_are_an_error_or_end_the_binding) {
  for (const bool watcher : {true, false}) {
    for (const Descriptor& wrong : not_bells()) {
      auto client = import_with(good_region(), wrong.make(), {.call_timeout = 20ms, .watcher = watcher});
      if (!client) {
        EXPECT_EQ(client.code(), Errc::bad_message) << wrong.name << ": " << client.error().message();
        EXPECT_FALSE(client.error().text.empty()) << wrong.name;
        continue;
      }
      EXPECT_FALSE(client->Null()) << wrong.name;
      if (watcher) {
        EXPECT_TRUE(eventually([&] { return client->binding().revoked(); })) << wrong.name;
      }
    }
  }
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; })) << "some are closed on another thread";
}

TEST_F(BadDescriptors, in_place_of_a_bell_do_not_keep_a_processor_busy) {
  std::vector<Conformance::Client> clients;
  for (const Descriptor& wrong : not_bells()) {
    auto client = import_with(good_region(), wrong.make());
    if (client) clients.push_back(*std::move(client));
  }
  const auto used = processor_time(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(processor_time(CLOCK_PROCESS_CPUTIME_ID) - used, 100ms) << "somebody spins";
}

TEST_F(BadDescriptors, for_which_the_client_has_no_room_are_a_limit_reached) {
  if (kSanitized) GTEST_SKIP() << "forks beside threads, and a sanitizer's allocator does not know of forks";
  auto bell = shim::make_socket_pair();
  ASSERT_TRUE(bell);
  auto ends = answered_pair(encoded(conformance_answer()), std::array{good_region().get(), bell->first.get()});
  ASSERT_TRUE(ends);
  const pid_t child = fork();
  if (child == 0) {  // it has its own table, which it fills except for one place
    const rlimit few{200, 200};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(0xfe);
    int last = -1;
    for (int fd = 0; fd >= 0; fd = ::open("/dev/null", O_RDONLY)) last = fd;
    ::close(last);
    _exit(static_cast<int>(Conformance::Client::import_over(std::move(ends->first)).code()));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(static_cast<Errc>(WEXITSTATUS(status)), Errc::limit_reached);
}

}  // namespace
}  // namespace testing_lrpc
