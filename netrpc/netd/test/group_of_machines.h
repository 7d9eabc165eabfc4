// A group of machines, and a client's machine that calls it.
#pragma once

#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "counter.client.h"
#include "store.client.h"
#include "two_machines.h"

namespace lrpc::netd::test {

/// Three members and a client's machine on one Ethernet, all with the same graph.
class GroupOfMachines : public ::testing::Test {
 protected:
  static constexpr std::size_t kMembers = 3;

  void SetUp() override {
    if (const auto why = netrpc::test::why_no_namespaces()) GTEST_SKIP() << *why;
    if (const auto why = netrpc::test::why_no_bridges()) GTEST_SKIP() << *why;
    bridge = std::make_unique<netrpc::test::Bridge>();
    key = run(std::string(LRPC_NETD) + " --generate-key").output;
    for (std::size_t i = 0; i < kMembers; ++i) {
      members[i].machine = add_machine(address(i));
      start_member(i);
    }
    client = add_machine("10.8.0.9");
    start_netd(*client);
  }

  static std::string address(std::size_t member) { return "10.8.0." + std::to_string(member + 1); }
  std::unique_ptr<Machine> add_machine(const std::string& at) {
    auto machine = std::make_unique<Machine>(at);
    bridge->plug(machine->where(), "eth0", at + "/24");
    machine->write_keys("* " + key);
    std::ofstream graph(machine->file("graph"));
    graph << "udp     = UDP(address = \"" << at << "\");\n"
          << "auth    = AUTH(keys = \"" << machine->file("keys") << "\") over udp;\n"
          << "channel = CHANNEL(give_up = 30s, reply_life = 40s) over auth;\n"
          << "select  = SELECT over channel;\n";
    const std::map<std::string, std::string> accepts{
        {"anyone", "ONE_ACCEPT"}, {"replicas", "MAJORITY"}, {"everyone", "ALL_ACCEPT"}};
    int number = 240;
    for (const auto& [name, accept] : accepts)
      graph << "c_" << name << " = COMPOSITE { GRPC; SYNC; " << accept
            << "; STILL_WORKING(silences = 900); NUMBER; UNIQUE; ACK(tries = 9999); MEMBERSHIP; } over auth;\n"
            << "s_" << name << " = SELECT(number = " << number++ << ") over c_" << name << ";\n"
            << name << " = GROUP(members = [10.8.0.1, 10.8.0.2, 10.8.0.3]) over s_" << name << ";\n";
    return machine;
  }
  static void start_netd(Machine& machine, std::vector<std::string> options = {}) {
    options.insert(options.end(), {"--graph", machine.file("graph")});
    machine.start_netd(std::move(options));
  }
  void start_member(std::size_t i) {
    Machine& machine = *members[i].machine;
    start_netd(machine, {"--export", "*"});
    restart_replica(i);
  }
  void kill_member(std::size_t i) {
    members[i].replica = {};
    members[i].machine->netd() = {};
  }
  [[nodiscard]] ImportOptions options() const {
    ImportOptions options;
    options.nameserver = client->socket();
    return options;
  }
  [[nodiscard]] std::string logs() const {
    std::string all = client->log();
    for (const auto& member : members) all += member.machine->log();
    return all;
  }
  void restart_replica(std::size_t i) {
    Machine& machine = *members[i].machine;
    members[i].replica = {};
    members[i].replica = machine.start({LRPC_REPLICA, "--nameserver", machine.socket(), machine.file(".")});
  }
  /// The members that answer a read.
  static std::set<std::string> heard(Store::Client& store) {
    std::set<std::string> who;
    const auto replies = store.all().Read("nothing");
    if (!replies) return who;
    for (const auto& [member, read] : *replies)
      if (read) who.insert(member.str());
    return who;
  }

  struct Member {
    std::unique_ptr<Machine> machine;
    Process replica;
  };
  std::unique_ptr<netrpc::test::Bridge> bridge;
  std::string key;
  std::array<Member, kMembers> members;
  std::unique_ptr<Machine> client;
};

}  // namespace lrpc::netd::test
