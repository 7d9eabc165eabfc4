// Watching a remote binding for its revocation: the watcher is notified of each way in which the other end can go,
// without making a call, as for a server on this machine.
#include <poll.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include "lrpc/server.h"
#include "remote_fixture.h"
#include "world.h"

namespace testing_netpath {
namespace {

[[nodiscard]] bool readable(int fd, milliseconds limit = milliseconds(0)) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, static_cast<int>(limit.count())) == 1 && (entry.revents & POLLIN) != 0;
}

class RemoteRevocation : public TwoHosts {
 protected:
  /// One binding and everything that is notified of its end.
  struct Watched {
    std::optional<Conformance::Client> client;
    int fd = -1;
    std::mutex mutex;
    std::vector<int> told;

    void tell(int who) {
      std::lock_guard lock(mutex);
      told.push_back(who);
    }
    [[nodiscard]] std::vector<int> heard() {
      std::lock_guard lock(mutex);
      return told;
    }
  };

  void watch(Watched& watched, const std::string& name) const {
    auto options = import_options();
    options.on_revoked = [&watched] { watched.tell(0); };
    auto client = Conformance::Client::import(name, options);
    ASSERT_TRUE(client) << client.error().message();
    watched.client.emplace(*std::move(client));
    const auto fd = watched.client->binding().revocation_fd();
    ASSERT_TRUE(fd) << fd.error().message();
    watched.fd = *fd;
    ASSERT_TRUE(watched.client->binding().when_revoked([&watched] { watched.tell(1); }));
    EXPECT_FALSE(readable(watched.fd));
  }
  /// The binding has not ended, and stays alive by itself.
  void expect_alive(Watched& watched) {
    const std::uint64_t before = network_.pings;
    EXPECT_TRUE(eventually([&] { return network_.pings >= before + 3; })) << "several keepalives";
    EXPECT_FALSE(readable(watched.fd));
    EXPECT_TRUE(watched.heard().empty());
    EXPECT_TRUE(watched.client->Null());
  }
  static void expect_revoked(Watched& watched) {
    EXPECT_TRUE(readable(watched.fd, kPatience));
    EXPECT_TRUE(watched.client->binding().revoked());
    EXPECT_TRUE(eventually([&] { return watched.heard().size() == 2; }));
    EXPECT_EQ(watched.heard(), (std::vector<int>{0, 1})) << "each once, in their order";
    EXPECT_EQ(watched.client->Null().code(), Errc::binding_revoked);
    EXPECT_TRUE(readable(watched.fd)) << "it stays so";
    EXPECT_EQ(watched.client->binding().revocation_fd().value(), watched.fd);
    std::atomic<bool> late{false};
    EXPECT_TRUE(watched.client->binding().when_revoked([&] { late = true; }));
    EXPECT_TRUE(eventually([&] { return late.load(); })) << "who comes late is told, too";
  }
};

TEST_F(RemoteRevocation, comes_when_the_server_dies) {
  testing_lrpc::Process process({NETPATH_TEST_SERVER, "--nameserver", there_->socket(), "mortal"});
  Watched mortal;
  Watched other;
  ASSERT_NO_FATAL_FAILURE(watch(mortal, "mortal@10.0.0.2"));
  ASSERT_NO_FATAL_FAILURE(watch(other, "files@10.0.0.2"));
  expect_alive(mortal);
  process.kill_and_wait();
  expect_revoked(mortal);
  expect_alive(other);
}

TEST_F(RemoteRevocation, comes_for_each_of_more_bindings_than_one_keepalive_names) {
  here_->stop_broker();
  here_->start_broker({.keepalive = kKeepalive, .named = 2, .boot_id = 0});
  testing_lrpc::Process process({NETPATH_TEST_SERVER, "--nameserver", there_->socket(), "mortal"});
  std::array<Watched, 5> first;
  for (Watched& watched : first) ASSERT_NO_FATAL_FAILURE(watch(watched, "files@10.0.0.2"));
  Watched last;
  ASSERT_NO_FATAL_FAILURE(watch(last, "mortal@10.0.0.2"));
  process.kill_and_wait();
  expect_revoked(last);
  expect_alive(first[0]);
}

TEST_F(RemoteRevocation, comes_when_the_server_dies_in_a_call) {
  testing_lrpc::Process process({NETPATH_TEST_SERVER, "--nameserver", there_->socket(), "mortal"});
  Watched mortal;
  ASSERT_NO_FATAL_FAILURE(watch(mortal, "mortal@10.0.0.2"));
  EXPECT_EQ(mortal.client->Die().code(), Errc::call_failed);
  expect_revoked(mortal);
}

TEST_F(RemoteRevocation, comes_when_the_server_goes_in_order_or_ends_the_binding_but_not_when_it_withdraws_the_name) {
  std::atomic<std::uint64_t> bound{0};
  lrpc::ExportOptions options;
  options.authorise_remote = [](const lrpc::shim::Principal&) { return lrpc::Status(); };
  options.on_bound = [&](std::uint64_t id, const lrpc::shim::Credentials&) { bound = id; };
  auto id = Conformance::export_to(*server_, "watched", service_, options);
  ASSERT_TRUE(id);
  Watched ended;
  ASSERT_NO_FATAL_FAILURE(watch(ended, "watched@10.0.0.2"));
  const std::uint64_t first = bound;
  Watched left;
  ASSERT_NO_FATAL_FAILURE(watch(left, "watched@10.0.0.2"));
  ASSERT_TRUE(server_->withdraw(*id));
  EXPECT_EQ(import("watched@10.0.0.2").code(), Errc::name_unknown);
  expect_alive(ended);
  server_->end_binding(first);
  expect_revoked(ended);
  expect_alive(left);
  server_.reset();
  expect_revoked(left);
}

TEST_F(RemoteRevocation, comes_when_the_network_domain_there_dies_whether_or_not_another_takes_its_place) {
  for (const bool replaced : {false, true}) {
    Watched watched;
    ASSERT_NO_FATAL_FAILURE(watch(watched, "files@10.0.0.2"));
    there_->stop_broker();
    if (replaced) there_->start_broker(there_options());
    expect_revoked(watched);
    if (!replaced) there_->start_broker(there_options());
  }
  EXPECT_TRUE(import()->Null());
}

TEST_F(RemoteRevocation, comes_at_once_when_the_network_domain_here_dies) {
  Watched watched;
  ASSERT_NO_FATAL_FAILURE(watch(watched, "files@10.0.0.2"));
  here_->stop_broker();
  expect_revoked(watched);
}

TEST_F(RemoteRevocation, of_a_lost_reply_comes_with_the_call_that_failed) {
  Watched watched;
  ASSERT_NO_FATAL_FAILURE(watch(watched, "files@10.0.0.2"));
  network_.lose_replies_to_calls = true;
  EXPECT_EQ(watched.client->Add(1, 2).code(), Errc::call_failed);
  expect_revoked(watched);
  network_.lose_replies_to_calls = false;
}

TEST_F(RemoteRevocation, is_told_to_nobody_when_it_is_the_client_who_lets_go) {
  Watched watched;
  ASSERT_NO_FATAL_FAILURE(watch(watched, "files@10.0.0.2"));
  watched.client.reset();
  EXPECT_TRUE(eventually([&] { return there_->broker().statistics().bindings == 0; }));
  server_.reset();
  std::this_thread::sleep_for(4 * kKeepalive);
  EXPECT_TRUE(watched.heard().empty());
}

TEST_F(RemoteRevocation, cannot_be_watched_where_nobody_watches) {
  auto options = import_options();
  options.watcher = false;
  auto client = Conformance::Client::import("files@10.0.0.2", options);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->binding().revocation_fd().code(), Errc::not_supported);
  EXPECT_EQ(client->binding().when_revoked([] {}).code(), Errc::not_supported);
}

}  // namespace
}  // namespace testing_netpath
