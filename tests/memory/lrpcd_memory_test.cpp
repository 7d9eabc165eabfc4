// A nameserver for which there is no memory: it begins nothing new, finishes what it has begun, and lives.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "conformance_service.h"
#include "eventually.h"
#include "faulty_process.h"
#include "lrpc/server.h"
#include "world.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;

class NameserverWithoutMemory : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] auto import(const std::string& name, std::chrono::milliseconds timeout = 0ms) const {
    return Conformance::Client::import(name, {.nameserver = socket_, .timeout = timeout});
  }
  /// All that a nameserver is asked for: names that come and go, imports that succeed, that wait, that wait in vain.
  void ask_for_everything() {
    ConformanceService service;
    lrpc::Server server({.nameserver = socket_});
    const auto exported = Conformance::export_to(server, "comes.and.goes", service);
    if (auto client = import("comes.and.goes")) (void)client->Null();
    if (auto client = import("stays")) (void)client->Null();
    (void)import("never.there", 5ms);
    list();
    if (exported) (void)server.withdraw(*exported);
  }

  void list() const {
    const auto socket = lrpc::shim::connect_nameserver(socket_);
    if (socket && lrpc::shim::send_message(socket->get(), {1, lrpc::shim::ListRequest{}, {}, {}}))
      (void)lrpc::shim::receive_message(socket->get(), kPatience);
  }

  TemporaryDirectory directory_;
  const std::string socket_ = (directory_.path() / "lrpcd.sock").string();
};

TEST_P(NameserverWithoutMemory, finishes_what_it_has_begun_and_lives) {
  FaultyProcess lrpcd({LRPC_TEST_LRPCD, "--socket", socket_, "--backend", GetParam(), "--log-level", "warning"});
  ConformanceService service;
  lrpc::Server server({.nameserver = socket_});
  ASSERT_TRUE(Conformance::export_to(server, "stays", service));
  const auto life = [&] { ask_for_everything(); };
  const auto well = [&] {
    return eventually([&] {
      auto client = import("stays");
      return client && client->Null();
    });
  };
  fail_each_and_leak_nothing(lrpcd, life, well, 12);
}

INSTANTIATE_TEST_SUITE_P(EveryBackend, NameserverWithoutMemory, testing::Values("io_uring", "epoll"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
