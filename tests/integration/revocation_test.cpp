// Watching a binding for its revocation: a descriptor to poll, and functions that are called.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/region.h"
#include "lrpc/server.h"
#include "mortal_test.h"
#include "private_answer.h"

namespace testing_lrpc {
namespace {

[[nodiscard]] bool readable(int fd, std::chrono::milliseconds limit = 0ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(limit.count())) == 1 && (entry.revents & POLLIN) != 0;
}

class Revocation : public testing::Test {
 protected:
  lrpc::Result<Mortal::Client> import(lrpc::ImportOptions options = {}) {
    options.nameserver = world_.nameserver();
    return Mortal::Client::import("mortal", options);
  }
  World world_;
  Process server_{{LRPC_TEST_MORTAL, "server", world_.nameserver(), "mortal"}};
};

TEST_F(Revocation, makes_a_descriptor_readable_for_good) {
  auto client = import();
  auto other = import();
  ASSERT_TRUE(client && other && client->Null());
  const auto fd = client->binding().revocation_fd();
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_EQ(client->binding().revocation_fd().value(), *fd) << "the same each time";
  EXPECT_NE(other->binding().revocation_fd().value(), *fd);
  EXPECT_FALSE(readable(*fd, 50ms));
  server_.kill_and_wait();
  EXPECT_TRUE(readable(*fd, kPatience));
  EXPECT_TRUE(client->binding().revoked());
  EXPECT_TRUE(readable(*fd)) << "it stays so";
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
}

TEST_F(Revocation, is_seen_by_who_asks_for_the_descriptor_afterwards) {
  auto client = import();
  ASSERT_TRUE(client && client->Null());
  server_.kill_and_wait();
  ASSERT_TRUE(eventually([&] { return client->binding().revoked(); }));
  const auto fd = client->binding().revocation_fd();
  ASSERT_TRUE(fd) << fd.error().message();
  EXPECT_TRUE(readable(*fd));
}

TEST_F(Revocation, of_many_bindings_is_one_epoll_wait) {
  std::vector<Mortal::Client> clients;
  const lrpc::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  for (std::uint32_t i = 0; i < 8; ++i) {
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    const auto fd = client->binding().revocation_fd();
    ASSERT_TRUE(fd) << fd.error().message();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.u32 = i;
    ASSERT_EQ(epoll_ctl(epoll.get(), EPOLL_CTL_ADD, *fd, &event), 0);
    clients.push_back(*std::move(client));
  }
  server_.kill_and_wait();
  std::vector<std::uint32_t> seen;
  epoll_event event{};
  while (seen.size() < clients.size() && epoll_wait(epoll.get(), &event, 1, kPatienceMs) == 1)
    seen.push_back(event.data.u32);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Revocation, has_no_descriptor_left_once_the_binding_is_gone) {
  int fd = -1;
  {
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    fd = client->binding().revocation_fd().value();
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST_F(Revocation, calls_everybody_who_asked_once_in_their_order) {
  std::vector<int> told;  // used only by the watcher's thread until all were called
  std::atomic<int> count{0};
  const auto tell = [&](int who) {
    return [&, who] {
      told.push_back(who);
      ++count;
    };
  };
  lrpc::ImportOptions options;
  options.on_revoked = tell(0);
  auto client = import(std::move(options));
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->binding().when_revoked([&] {
    tell(1)();
    throw std::runtime_error("on purpose");
  }));
  ASSERT_TRUE(client->binding().when_revoked(tell(2)));
  EXPECT_EQ(count, 0);
  server_.kill_and_wait();
  ASSERT_TRUE(eventually([&] { return count == 3; }));
  EXPECT_EQ(told, (std::vector<int>{0, 1, 2}));
  // The watcher's thread may still be in the last of them.
  bool at_once = false;
  EXPECT_TRUE(eventually([&, here = std::this_thread::get_id()] {
    EXPECT_TRUE(client->binding().when_revoked([&at_once, here] {
      if (std::this_thread::get_id() == here) at_once = true;
    }));
    return at_once;
  })) << "who comes late is told at once";
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(count, 3);
}

TEST_F(Revocation, calls_nobody_when_it_is_the_client_who_lets_go) {
  std::atomic<int> count{0};
  for (int i = 0; i < 20; ++i) {
    auto client = import();
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE(client->binding().when_revoked([&] { ++count; }));
  }
  server_.kill_and_wait();
  EXPECT_EQ(count, 0);
}

TEST_F(Revocation, cannot_be_watched_where_nobody_watches) {
  auto client = import({.watcher = false});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->binding().revocation_fd().code(), Errc::not_supported);
  EXPECT_EQ(client->binding().when_revoked([] {}).code(), Errc::not_supported);
  EXPECT_EQ(import({.watcher = false, .on_revoked = [] {}}).code(), Errc::not_supported);
  EXPECT_EQ(import({.gate = lrpc::Gate::trap, .on_revoked = [] {}}).code(), Errc::not_supported);
}

TEST_F(Revocation, is_the_truth_in_a_fork_child_and_no_news_to_the_parent) {
  auto client = import();
  auto unasked = import();
  ASSERT_TRUE(client && unasked);
  const int fd = client->binding().revocation_fd().value();
  const pid_t child = fork();
  if (child == 0) {
    const bool right = readable(fd) && client->binding().revocation_fd().value() == fd &&
                       unasked->binding().revoked() && readable(unasked->binding().revocation_fd().value()) &&
                       client->binding().when_revoked([] {}).code() == Errc::not_supported;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(readable(fd, 50ms)) << "the parent's binding lives";
  EXPECT_TRUE(client->Null());
  server_.kill_and_wait();
  EXPECT_TRUE(readable(fd, kPatience));
}

TEST(RevocationByTheServer, is_its_end_of_the_bell_on_which_it_can_say_nothing) {
  namespace shim = lrpc::shim;
  auto bell = shim::make_socket_pair();
  auto layout = shim::RegionLayout::of(Mortal::kPdl.classes);
  ASSERT_TRUE(bell && layout);
  auto region = shim::create_region(*layout);
  ASSERT_TRUE(region);
  auto ends = answered_pair(encoded(bound_answer(Mortal::kPdl.classes)), std::array{region->get(), bell->second.get()});
  ASSERT_TRUE(ends) << ends.error().message();
  std::atomic<int> told{0};
  auto client = Mortal::Client::import_over(std::move(ends->first), {.on_revoked = [&] { ++told; }});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(send(bell->first.get(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_FALSE(client->binding().revoked());
  bell->first.reset();
  EXPECT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_TRUE(client->binding().revoked());
}

TEST(RevocationByTheServer, is_marked_in_the_words_of_calls_and_in_no_other) {
  namespace shim = lrpc::shim;
  auto bell = shim::make_socket_pair();
  auto layout = shim::RegionLayout::of(Mortal::kPdl.classes);
  ASSERT_TRUE(bell && layout);
  auto memory = shim::create_region(*layout);
  ASSERT_TRUE(memory);
  auto ends = answered_pair(encoded(bound_answer(Mortal::kPdl.classes)), std::array{memory->get(), bell->second.get()});
  ASSERT_TRUE(ends) << ends.error().message();
  std::atomic<bool> told{false};
  auto client = Mortal::Client::import_over(std::move(ends->first), {.on_revoked = [&] { told = true; }});
  ASSERT_TRUE(client) << client.error().message();
  auto region = shim::Region::map(*std::move(memory), *std::move(layout));
  ASSERT_TRUE(region);
  auto held = client->start().Hold();
  bell->first.reset();
  EXPECT_EQ(held.finish().code(), Errc::call_failed);
  EXPECT_TRUE(eventually([&] { return told.load(); }));
  int marked = 0;
  for (std::uint32_t i = 0; i < region->layout().astack_count(); ++i) {
    const shim::CallWord word(region->astack(i).head->word.load());
    EXPECT_EQ(word.revoked(), word.bits() != 0) << "A-stack " << i;
    marked += word.revoked() ? 1 : 0;
  }
  EXPECT_EQ(marked, 1) << "one is in a call";
}

/// A server, and the client of its only binding, which is private.
template <class Service>
struct PrivateBinding {
  PrivateBinding() {
    auto ends = lrpc::shim::make_socket_pair();
    EXPECT_TRUE(ends);
    lrpc::ExportOptions options;
    options.on_bound = [this](std::uint64_t id, const lrpc::shim::Credentials&) { bound = id; };
    EXPECT_TRUE(Mortal::serve_over(server, std::move(ends->first), service, options));
    client = Mortal::Client::import_over(std::move(ends->second));
  }
  Service service;
  std::atomic<std::uint64_t> bound{0};
  lrpc::Server server;
  lrpc::Result<Mortal::Client> client = Errc::peer_gone;
};

TEST(RevocationByTheServer, reaches_the_client_whose_binding_it_ends) {
  PrivateBinding<MortalService> one;
  MortalService& service = one.service;
  auto& client = one.client;
  ASSERT_TRUE(client) << client.error().message();
  const int fd = client->binding().revocation_fd().value();
  std::atomic<int> told{0};
  ASSERT_TRUE(client->binding().when_revoked([&] { ++told; }));
  Errc held{};
  std::thread caller([&] { held = client->Hold().code(); });
  EXPECT_TRUE(eventually([&] { return service.held == 1; }));
  EXPECT_FALSE(readable(fd));
  one.server.end_binding(one.bound);
  EXPECT_TRUE(readable(fd, kPatience));
  caller.join();
  // The procedure returns when its caller has gone; its return may arrive before the revocation.
  EXPECT_TRUE(held == Errc::call_failed || held == Errc::ok) << static_cast<int>(held);
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
  EXPECT_TRUE(eventually([&] { return told == 1; }));
}

/// A service whose objects take long to destroy.
class ReluctantService : public MortalService {
 public:
  Mortal::Thing Own(lrpc::CallContext& context) {
    const auto destroy = [this](Thing* thing) {
      closing = true;
      std::this_thread::sleep_for(50ms);
      delete thing;
    };
    return context.grant<Mortal::Thing>(std::shared_ptr<Thing>(new Thing(live), destroy));
  }
  std::atomic<bool> closing{false};
};

TEST(RevocationByTheServer, waits_for_the_handles_of_a_client_that_has_gone_before) {
  PrivateBinding<ReluctantService> one;
  ASSERT_TRUE(one.client) << one.client.error().message();
  ASSERT_TRUE(one.client->Own());
  one.client = Errc::peer_gone;
  ASSERT_TRUE(eventually([&] { return one.service.closing.load(); }));
  one.server.end_binding(one.bound);
  EXPECT_EQ(one.service.live, 0);
}

TEST(RevocationByTheServer, is_told_on_the_thread_that_tells_of_bindings) {
  MortalService service;
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  std::atomic<std::uint64_t> bound{0};
  std::atomic<std::uint64_t> unbound{0};
  std::thread::id bound_on;
  std::thread::id unbound_on;
  lrpc::ExportOptions options;
  options.on_bound = [&](std::uint64_t id, const lrpc::shim::Credentials&) {
    bound_on = std::this_thread::get_id();
    bound = id;
  };
  options.on_unbound = [&](std::uint64_t id) {
    unbound_on = std::this_thread::get_id();
    unbound = id;
  };
  lrpc::Server server;
  ASSERT_TRUE(Mortal::serve_over(server, std::move(ends->first), service, options));
  auto client = Mortal::Client::import_over(std::move(ends->second));
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(eventually([&] { return bound != 0; }));
  server.end_binding(bound);
  server.end_binding(bound);  // without effect
  ASSERT_TRUE(eventually([&] { return unbound != 0; }));
  EXPECT_EQ(unbound, bound);
  EXPECT_EQ(unbound_on, bound_on);
}

}  // namespace
}  // namespace testing_lrpc
