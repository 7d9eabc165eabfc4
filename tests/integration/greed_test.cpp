// Faults that a server survives by itself: no descriptors left, greedy clients, throwing callbacks.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "closed_aside.h"
#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;

TEST(Greed, a_server_out_of_descriptors_refuses_and_serves_again_when_the_hog_is_gone) {
  World world;
  const Process server = world.start_server({"scarce"}, {"--max-descriptors", "40", "--max-descriptors-per-user",
                                                         std::to_string(std::uint64_t{lrpc::kNoLimit})});
  auto before = world.import("scarce");
  ASSERT_TRUE(before) << before.error().message();
  {
    std::vector<Conformance::Client> hog;
    int refused = 0;
    while (refused < 20) {
      auto client = world.import("scarce");
      if (client) {
        hog.push_back(*std::move(client));
        ASSERT_LT(hog.size(), 40U);
        continue;
      }
      ++refused;
      ASSERT_EQ(client.code(), Errc::limit_reached) << client.error().message();
      EXPECT_NE(client.error().message().find("out of file descriptors"), std::string::npos)
          << client.error().message();
    }
    EXPECT_GT(hog.size(), 5U);
    EXPECT_EQ(before->Add(1, 2).value(), 3) << "bindings that exist do not notice";
    for (auto& client : hog) EXPECT_TRUE(client.Null());
  }
  EXPECT_TRUE(eventually([&] { return before->Statistics().value().bindings == 1; }));
  auto after = world.import("scarce");
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->Add(1, 2).value(), 3);
  // Its names are registered with a new nameserver, as any other server's.
  world.stop_nameserver();
  world.start_nameserver();
  EXPECT_TRUE(world.import("scarce", {.timeout = kPatience}));
}

/// As long as it lives, this process can open no descriptor more.
class NoFreeDescriptors {
 public:
  NoFreeDescriptors() {
    wait_for_what_is_closed_aside();
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit tight = before_;
    tight.rlim_cur = static_cast<rlim_t>(lrpc::UniqueFd(dup(STDERR_FILENO)).get()) + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int fd = dup(STDERR_FILENO); fd >= 0; fd = dup(STDERR_FILENO)) taken_.emplace_back(fd);
  }
  NoFreeDescriptors(const NoFreeDescriptors&) = delete;
  NoFreeDescriptors& operator=(const NoFreeDescriptors&) = delete;
  ~NoFreeDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<lrpc::UniqueFd> taken_;
};

TEST(Greed, a_private_server_out_of_descriptors_says_so_and_serves_again_when_it_has_some) {
  ConformanceService service;
  lrpc::Server server;
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(Conformance::serve_over(server, std::move(ends->first), service));
  const int client = ends->second.get();
  const auto answer = [client] {
    lrpc::shim::ImportRequest wanted{.name = "",
                                     .interface = lrpc::shim::OwnedInterfaceId::of(Conformance::kPdl.interface)};
    EXPECT_TRUE(lrpc::shim::send_message(client, {1, std::move(wanted), {}, {}}));
    auto received = lrpc::shim::receive_message(client, kPatience);
    EXPECT_TRUE(received && *received);
    return received && *received ? std::move(**received) : lrpc::shim::BinderMessage{};
  };
  {
    const NoFreeDescriptors none;
    const auto refused = answer();
    const auto* const failed = std::get_if<lrpc::shim::Failed>(&refused.body);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->code, Errc::limit_reached);
    EXPECT_NE(failed->text.find("in the server a system call failed"), std::string::npos) << failed->text;
  }
  EXPECT_TRUE(std::holds_alternative<lrpc::shim::Bound>(answer().body));
}

TEST(Greed, one_client_process_gets_no_more_than_its_share) {
  World world;
  const Process server = world.start_server({"shared"}, {"--max-bindings-per-client", "3"});
  std::vector<Conformance::Client> clients;
  for (int i = 0; i < 3; ++i) {
    auto client = world.import("shared");
    ASSERT_TRUE(client) << client.error().message();
    clients.push_back(*std::move(client));
  }
  auto refused = world.import("shared");
  ASSERT_EQ(refused.code(), Errc::limit_reached);
  EXPECT_NE(refused.error().message().find("max_bindings_per_client_process"), std::string::npos)
      << refused.error().message();
  const Process other = world.start_server({"other"});
  EXPECT_EQ(world.import("other")->Through("shared", 1, 2).value(), 3) << "another process has its own share";
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return world.import("shared").has_value(); }));
}

TEST(Greed, a_server_takes_no_more_bindings_than_it_was_told_private_ones_included) {
  PrivateServer server = start_private_server({"--max-bindings", "2"});
  std::vector<Conformance::Client> clients;
  for (int i = 0; i < 3; ++i) {
    auto client = Conformance::Client::import_over(lrpc::UniqueFd(dup(server.socket.get())));
    if (i < 2) {
      ASSERT_TRUE(client) << client.error().message();
      clients.push_back(*std::move(client));
    } else {
      ASSERT_EQ(client.code(), Errc::limit_reached);
      EXPECT_NE(client.error().message().find("(max_bindings)"), std::string::npos) << client.error().message();
    }
  }
}

TEST(Callbacks, that_throw_refuse_or_are_swallowed_and_the_server_lives) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver(), .max_estacks = 1});
  ConformanceService service(&server);
  std::atomic<int> bound{0};
  std::atomic<int> unbound{0};
  lrpc::ExportOptions throwing;
  throwing.on_bound = [&](std::uint64_t, const lrpc::shim::Credentials&) {
    ++bound, throw std::runtime_error("on purpose");
  };
  throwing.on_unbound = [&](std::uint64_t) { ++unbound, throw 42; };
  ASSERT_TRUE(Conformance::export_to(server, "throws", service, throwing));
  throwing.authorise = [](const lrpc::shim::Credentials&) -> lrpc::Status { throw std::runtime_error("on purpose"); };
  ASSERT_TRUE(Conformance::export_to(server, "closed", service, throwing));

  auto refused = world.import("closed");
  EXPECT_EQ(refused.code(), Errc::not_permitted);
  {
    auto client = world.import("throws");
    ASSERT_TRUE(client) << client.error().message();
    EXPECT_EQ(client->Add(1, 2).value(), 3) << "no E-stacks at all is taken for one";
  }
  EXPECT_TRUE(eventually([&] { return unbound == 1; }));
  EXPECT_EQ(bound, 1);
}

TEST(Greed, a_handle_over_the_share_of_a_user_is_an_exception_of_its_procedure) {
  ConformanceService service;
  std::atomic<int> told{0};
  lrpc::Server server({.max_handles_per_user = 2});
  lrpc::ExportOptions options;
  options.on_exception = [&](const lrpc::EscapedException& escaped) {
    EXPECT_NE(escaped.what.find("max_handles_per_user"), std::string_view::npos) << escaped.what;
    ++told;
  };
  auto client = bind_privately(server, service, {}, options);
  ASSERT_TRUE(client) << client.error().message();
  const auto first = client->Open(1);
  ASSERT_TRUE(first && client->Open(2));
  EXPECT_EQ(client->Open(3).code(), Errc::exception_escaped);
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(client->Shut(*first));
  EXPECT_TRUE(client->Open(3));
}

}  // namespace
}  // namespace testing_lrpc
