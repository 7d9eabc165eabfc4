#include "daemons.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "remote_caller.h"

namespace lrpc::storm {
namespace {

/// An address of the loopback network, 127.0.0.0/9, that no other process uses.
std::string address_of(std::uint32_t machine) {
  const std::uint32_t host = (static_cast<std::uint32_t>(getpid()) << 3 | (machine + 1)) % (std::uint32_t{1} << 23);
  return "127." + std::to_string(host >> 16) + "." + std::to_string(host >> 8 & 255) + "." + std::to_string(host & 255);
}

/// lrpc-netd's own graph over UDP, on a bad wire: packets as short as those of an Ethernet, some of which are lost,
/// doubled or late.
std::string graph_of(const Machine& machine, const std::string& keys, Fault fault) {
  std::string graph = "udp      = UDP(address = \"" + machine.address +
                      "\");\n"
                      "wire     = FAULT(loss = 0.002, duplicate = 0.005, reorder = 0.005) over udp;\n"
                      "fragment = FRAGMENT(fragment_size = 1400) over wire;\n"
                      "auth     = AUTH(keys = \"" +
                      keys +
                      "\") over fragment;\n"
                      "channel  = CHANNEL(give_up = 30s, reply_life = 40s) over auth;\n"
                      "select   = SELECT(channels = 288) over channel;\n";
  if (fault == Fault::netd_lost_calls) graph += "lossy = FAULT(loss = 0.01) over select;\n";
  return graph;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  (void)::chmod(path.c_str(), 0600);
}

}  // namespace

std::vector<Machine> make_machines(const std::string& directory, const std::string& lrpcd, const std::string& netd,
                                   bool network, Fault fault) {
  std::vector<Machine> machines(network ? 2 : 1);
  // The two know each other; who else on this machine reaches them does not matter.
  const std::string keys = directory + "/keys";
  if (network) write_file(keys, "* ARyn8oOMfjQEWrP6dR/UC+54bRcJb68G/LOs+8nIL5Q=\n");
  for (std::uint32_t i = 0; i < machines.size(); ++i) {
    Machine& machine = machines[i];
    const std::string own = directory + "/machine-" + std::to_string(i);
    const std::string which = !network ? "" : i == 0 ? " of machine 0" : " of machine 1";
    machine.nameserver = own + ".sock";
    machine.lrpcd = {.name = "lrpcd" + which,
                     .role = Role::nameserver,
                     .command = {lrpcd, "--socket", machine.nameserver, "--log-level", "warning"},
                     .log = own + ".lrpcd.log",
                     .lingers = [socket = machine.nameserver] { return sockets_at(socket) != 0; }};
    if (!network) continue;
    machine.address = address_of(i);
    machine.state = own + ".state";
    const std::string graph = own + ".graph";
    write_file(graph, graph_of(machine, keys, fault));
    const bool loses_names = fault == Fault::netd_lost_name && i == 1;
    machine.netd = {
        .name = "lrpc-netd" + which,
        .role = Role::network_domain,
        .command = {netd, "--graph", graph, "--nameserver", machine.nameserver, "--export",
                    loses_names ? "nothing" : kRemotePattern, "--state", machine.state, "--log-level", "warning"},
        .log = own + ".netd.log",
        .lingers = [address = machine.address] { return udp_sockets_at(address) != 0; }};
  }
  return machines;
}

void ask_network_state(const Machine& machine) {
  std::ofstream(machine.state, std::ios::trunc).close();
  ::kill(machine.netd.pid, SIGUSR1);
}

std::optional<NetworkState> network_state(const Machine& machine) {
  std::ifstream file(machine.state);
  std::string line;
  unsigned long long paths = 0;
  unsigned long long hosts = 0;
  unsigned long long bindings = 0;
  if (!std::getline(file, line) || file.eof()) return std::nullopt;
  const int read = std::sscanf(line.c_str(), "remote bindings of this machine %llu, of %llu other hosts %llu;", &paths,
                               &hosts, &bindings);
  return read == 3 ? std::optional(NetworkState{paths, bindings}) : std::nullopt;
}

}  // namespace lrpc::storm
