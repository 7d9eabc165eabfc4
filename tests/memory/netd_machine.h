// One of the machines between which lrpc-netds carry calls: an lrpcd, and a server of "distant" in the test's process.
// The test starts the machine's lrpc-netd.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <span>
#include <string>

#include "distant.client.h"
#include "distant.server.h"
#include "eventually.h"
#include "lrpc/netrpc/address.h"
#include "lrpc/server.h"
#include "world.h"

namespace testing_lrpc {

class DistantService {
 public:
  using CallContext = lrpc::CallContext;
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
  std::uint64_t Sum(CallContext&, std::span<const std::byte> data) {
    return std::accumulate(data.begin(), data.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::byte b) { return sum + std::to_integer<std::uint64_t>(b); });
  }
  void Tell(CallContext&, std::uint32_t) {}
};

class NetdMachine {
 public:
  /// `address`: its lrpc-netd's.
  explicit NetdMachine(lrpc::netrpc::HostAddress address)
      : address_(address),
        server_({.nameserver = world_.nameserver()}),
        exported_(Distant::export_to(server_, "distant", service_)) {
    EXPECT_TRUE(exported_);
    std::ofstream(file("keys")) << "* ARyn8oOMfjQEWrP6dR/UC+54bRcJb68G/LOs+8nIL5Q=\n";
    ::chmod(file("keys").c_str(), 0600);
  }
  [[nodiscard]] const std::string& nameserver() const { return world_.nameserver(); }
  [[nodiscard]] std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] lrpc::netrpc::HostAddress address() const { return address_; }
  [[nodiscard]] std::string name() const { return lrpc::netrpc::to_string(address_); }
  /// Binds a client of this machine to the server of the other machine.
  [[nodiscard]] lrpc::Result<Distant::Client> import(const NetdMachine& other, const std::string& name = "distant",
                                                     std::chrono::milliseconds timeout = {}) const {
    return Distant::Client::import(name + "@" + other.name(), {.nameserver = nameserver(), .timeout = timeout});
  }

 private:
  const lrpc::netrpc::HostAddress address_;
  TemporaryDirectory directory_;
  World world_;
  DistantService service_;
  lrpc::Server server_;
  lrpc::Result<lrpc::ExportId> exported_;
};

/// The most of its reserve that this lrpc-netd, with this state file, has used so far. Call it while allocations
/// succeed.
inline std::size_t most_of_reserve(pid_t netd, const std::string& state) {
  { const std::ofstream emptied(state); }
  std::size_t most = 0;
  EXPECT_TRUE(eventually([&] {
    ::kill(netd, SIGUSR1);
    std::ifstream file(state);
    bool told = false;
    for (std::string line; !told && std::getline(file, line);) {
      std::size_t used = 0;
      std::size_t all = 0;
      told = std::sscanf(line.c_str(), "reserve: %zu bytes of %zu in use, %zu at most so far", &used, &all, &most) == 3;
    }
    return told;
  }));
  return most;
}

inline void call_everything(const NetdMachine& from, const NetdMachine& to) {
  auto client = from.import(to);
  if (!client) return;
  (void)client->Add(1, 2);
  const std::array<std::byte, 12'000> bytes{};
  (void)client->Sum(bytes);
  (void)client->Tell(3);
  (void)client->Add(3, 4);
}
inline bool serves(const NetdMachine& from, const NetdMachine& to) {
  return eventually([&] {
    auto client = from.import(to);
    const auto sum = client ? client->Add(20, 22) : lrpc::Result<std::int32_t>(client.error());
    return sum && *sum == 42;
  });
}

}  // namespace testing_lrpc
