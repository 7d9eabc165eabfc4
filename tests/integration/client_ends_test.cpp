// A client domain ends in every possible way while it calls over every gate. Its server notices and cleans up (LRPC
// §5.3).
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "lrpc/server.h"
#include "mortal_test.h"

namespace testing_lrpc {
namespace {

/// A server in this process that records its bindings.
class Host {
 public:
  Host() : server_({.nameserver = world_.nameserver()}) {
    lrpc::ExportOptions options;
    options.on_bound = [this](std::uint64_t id, const lrpc::shim::Credentials& client) {
      std::lock_guard lock(mutex_);
      bound_[id] = client.pid;
    };
    options.on_unbound = [this](std::uint64_t id) {
      std::lock_guard lock(mutex_);
      if (bound_.erase(id) == 0) ++told_twice_;
      ++unbound_;
    };
    auto exported = Mortal::export_to(server_, "host", service, options);
    if (!exported) throw std::runtime_error(exported.error().message());
  }
  /// Ends the held calls before the records are destroyed.
  ~Host() { service.let_all_go = true; }
  [[nodiscard]] Process start_client(Gate gate, int ending) const {
    return Process({LRPC_TEST_MORTAL, "client", world_.nameserver(), "host", std::to_string(static_cast<int>(gate)),
                    std::to_string(ending)});
  }
  [[nodiscard]] lrpc::Result<Mortal::Client> import(lrpc::ImportOptions options = {}) const {
    options.nameserver = world_.nameserver();
    return Mortal::Client::import("host", options);
  }
  [[nodiscard]] std::size_t bindings_of(pid_t pid) {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(bound_, [&](const auto& one) { return one.second == pid; }));
  }
  [[nodiscard]] int unbound() {
    std::lock_guard lock(mutex_);
    return unbound_;
  }
  [[nodiscard]] int told_twice() {
    std::lock_guard lock(mutex_);
    return told_twice_;
  }
  [[nodiscard]] lrpc::ServerStatistics statistics() const { return server_.statistics(); }

  MortalService service;

 private:
  World world_;
  std::mutex mutex_;
  std::map<std::uint64_t, pid_t> bound_;
  int unbound_ = 0;
  int told_twice_ = 0;
  lrpc::Server server_;
};

class ClientEnds : public testing::TestWithParam<Ending> {};

TEST_P(ClientEnds, its_server_hears_of_each_binding_once_runs_handles_down_and_lets_its_calls_go) {
  Host host;
  auto survivor = host.import();
  ASSERT_TRUE(survivor) << survivor.error().message();
  std::vector<Process> clients;
  for (const Gate gate : kEveryGate) clients.push_back(host.start_client(gate, static_cast<int>(GetParam())));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(survivor->Add(i, 1).value(), i + 1);
  if (GetParam() == Ending::StopThenKill) {
    for (auto& client : clients) wait_until_stopped(client.pid());
    for (int i = 0; i < 100; ++i) ASSERT_EQ(survivor->Add(i, 1).value(), i + 1);
    EXPECT_EQ(host.unbound(), 0) << "who is stopped is not dead";
    EXPECT_EQ(host.service.live, 4);
    for (auto& client : clients) client.kill_and_wait();
  }
  const auto cleaned_up = [&] {
    return host.unbound() == 4 && host.service.live == 0 && host.service.held == 0 && host.statistics().bindings == 1;
  };
  EXPECT_TRUE(eventually(cleaned_up)) << host.unbound() << " of 4 heard of, handles " << host.service.live << ", held "
                                      << host.service.held << ", bindings " << host.statistics().bindings;
  EXPECT_EQ(host.told_twice(), 0);
  if (name_of(GetParam()).starts_with("exec")) {
    for (const auto& client : clients) EXPECT_FALSE(has_ended(client.pid())) << "the process lives on";
  }
  for (int i = 0; i < 100; ++i) ASSERT_EQ(survivor->Add(i, 1).value(), i + 1);
}

INSTANTIATE_TEST_SUITE_P(by, ClientEnds, testing::ValuesIn(kEveryEnding), name_of_ending);

TEST(ClientEnds, while_it_imports_leaves_nothing_behind) {
  Host host;
  auto survivor = host.import();
  ASSERT_TRUE(survivor) << survivor.error().message();
  for (int round = 0; round < 20; ++round) {
    Process client = host.start_client(Gate::adaptive, -1);
    while (host.bindings_of(client.pid()) == 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    const pid_t pid = client.pid();
    client.kill_and_wait();
    EXPECT_TRUE(eventually([&] { return host.bindings_of(pid) == 0 && host.statistics().bindings == 1; }))
        << "round " << round << ": " << host.statistics().bindings << " bindings";
  }
  EXPECT_EQ(host.told_twice(), 0);
  EXPECT_EQ(survivor->Add(1, 2).value(), 3);
}

TEST(ClientStops, holds_up_nobody_and_goes_on_where_it_was) {
  Host host;
  auto survivor = host.import();
  ASSERT_TRUE(survivor) << survivor.error().message();
  // The client ends by a signal that it sends itself after its calls. Being stopped and continued before changes
  // nothing.
  const Process client = host.start_client(Gate::adaptive, static_cast<int>(Ending::StopThenKill));
  wait_until_stopped(client.pid());
  EXPECT_EQ(host.service.held, 1);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(survivor->Add(i, 1).value(), i + 1);
    client.send(SIGCONT);
    std::this_thread::sleep_for(30ms);
    client.send(SIGSTOP);
    wait_until_stopped(client.pid());
  }
  EXPECT_EQ(host.service.held, 1) << "its call is still under way";
  EXPECT_EQ(host.unbound(), 0);
}

}  // namespace
}  // namespace testing_lrpc
